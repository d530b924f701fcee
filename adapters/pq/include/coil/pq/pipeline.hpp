#pragma once

#include <coil/core/task.hpp>
#include <coil/pq/detail/session.hpp>
#include <coil/pq/parameters.hpp>
#include <coil/pq/result.hpp>
#include <coil/pq/statement.hpp>

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
/// next() throws pq::error for each of them.
///
/// query() does not wait: what it has queued stays in memory until next() sends it; next() receives
/// results at the same time. With very many statements, alternate between query() and next().
///
/// Threading and lifetime: used by the function that it was passed to, one call at a time.
/// Cancellation: next() throws std::system_error with std::errc::operation_canceled, and the
/// pipeline must then be left.
class pipeline {
public:
    explicit pipeline(detail::session& s) noexcept : session_(s) {}
    pipeline(const pipeline&) = delete;
    pipeline& operator=(const pipeline&) = delete;

    /// Queues one statement, with the parameters that `parameters` describes. Throws
    /// connection_error.
    template <class... T>
    void query(std::string sql, const T&... values) {
        push({std::move(sql), {}, parameters::of(values...)});
    }
    template <class... T>
    void query(const statement& prepared, const T&... values) {
        push({prepared.sql(), prepared.name(), parameters::of(values...)});
    }
    /// Ends a group of statements: commits them, if they have not failed. Statements without a
    /// sync() get one when their results are awaited.
    void sync();

    /// The result of the oldest statement whose result has not been returned; empty if there is
    /// none. Throws pq::error if that statement has failed; the next call continues with the
    /// following statement.
    [[nodiscard]] task<std::optional<result>> next() {
        std::optional<result> next;
        while (!receive(next)) {
            co_await session_.progress();
        }
        co_return next;
    }

    /// The number of statements whose results have not been returned yet.
    [[nodiscard]] std::size_t outstanding() const noexcept { return statements_; }

private:
    void push(detail::request&& r);
    /// Stores the oldest result, or an empty one if no statement is left. Returns false if the
    /// result has not arrived yet.
    [[nodiscard]] bool receive(std::optional<result>& next);

    detail::session& session_;
    std::deque<std::string> sent_; // the texts of the statements; a sync is an empty one
    std::size_t statements_ = 0;
    bool synced_ = true;
};

} // namespace coil::pq
