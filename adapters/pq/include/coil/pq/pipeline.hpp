#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>
#include <coil/pq/detail/session.hpp>
#include <coil/pq/parameters.hpp>
#include <coil/pq/result.hpp>
#include <coil/pq/statement.hpp>
#include <coil/stream/detail/late_task.hpp>

#include <coroutine>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace coil::pq {

/// Statements that are sent without waiting for the results of the earlier ones, see
/// connection::pipeline(). Their results are awaited in the same order:
///
///     co_await c.pipeline([&](pq::pipeline& p) -> task<> {
///         for (const auto& item : items) p.query("insert into t values ($1)", item);
///         while (auto r = co_await p.next()) changed += r->affected_rows();
///     });
///
/// The server executes the statements up to a sync() in one transaction, unless they contain
/// transaction commands. If one fails, the following ones up to the next sync() are not executed:
/// next() throws pq::error for each of them. next() also throws pq::error if none has failed but
/// the server cannot commit them, for example because of a deferred constraint.
///
/// query() only queues a statement in memory; next() sends what is queued while it receives
/// results. With very many statements, alternate between query() and next().
///
/// Threading and lifetime: used by the function that it was passed to, one call at a time.
/// Cancellation: next() throws std::system_error with std::errc::operation_canceled, and the
/// pipeline must then be left.
class pipeline {
public:
    class next_awaitable;

    explicit pipeline(detail::session& s) noexcept : session_(s) {}
    pipeline(const pipeline&) = delete;
    pipeline& operator=(const pipeline&) = delete;

    /// Queues one statement, with the parameters that `parameters` describes. Throws
    /// connection_error, or pq::error if libpq refuses the statement.
    template <class... T>
    void query(std::string sql, const T&... values) {
        push(std::move(sql), nullptr, parameters::of(values...));
    }
    template <class... T>
    void query(const statement& prepared, const T&... values) {
        push(prepared.sql(), prepared.name().c_str(), parameters::of(values...));
    }
    /// Ends a group of statements: the server commits them if none has failed. If statements have
    /// no sync() when their results are awaited, next() adds one.
    void sync();

    /// The result of the oldest statement whose result has not been returned; empty if there is
    /// none. Throws pq::error if that statement has failed; the next call continues with the
    /// following statement. Also throws it if the commit at a sync() has failed, with "commit" as
    /// the statement: then outstanding() is unchanged, and the results that were returned since the
    /// sync() before are void.
    [[nodiscard]] next_awaitable next() noexcept;

    /// The number of statements whose results have not been returned yet.
    [[nodiscard]] std::size_t outstanding() const noexcept { return statements_; }

private:
    void push(std::string sql, const char* prepared, const parameters& values);
    /// Stores the oldest result, or a null one if no statement is left. Returns false if the result
    /// has not arrived yet.
    [[nodiscard]] bool receive(result& next);
    bool accept_other(result& next);
    void end_statement();
    [[nodiscard]] task<result> wait_for_next();

    detail::session& session_;
    std::deque<std::optional<std::string>> sent_; // the texts of the statements; a sync has none
    std::size_t statements_ = 0;
    bool synced_ = true;
};

/// The awaitable of pipeline::next(). Suspends only if the result has not arrived.
class [[nodiscard("did you forget to co_await?")]] pipeline::next_awaitable
    : public coil::detail::not_its_result<pipeline::next_awaitable> {
public:
    explicit next_awaitable(pipeline& of) noexcept : of_(&of) {}

    class awaiter {
    public:
        explicit awaiter(pipeline& of) noexcept : of_(of) {}

        [[nodiscard]] bool await_ready() { return of_.receive(next_); }
        template <class P>
        auto await_suspend(std::coroutine_handle<P> waiter) {
            waiting_.start(of_.wait_for_next());
            return waiting_.await_suspend(waiter);
        }
        std::optional<result> await_resume() {
            if (waiting_.is_started()) {
                next_ = waiting_.await_resume();
            }
            if (next_.get() == nullptr) {
                return std::nullopt;
            }
            return std::move(next_);
        }

    private:
        pipeline& of_;
        result next_;
        coil::detail::late_task<result> waiting_;
    };
    [[nodiscard]] awaiter operator co_await() const noexcept { return awaiter(*of_); }

private:
    pipeline* of_;
};

inline pipeline::next_awaitable pipeline::next() noexcept { return next_awaitable(*this); }

} // namespace coil::pq
