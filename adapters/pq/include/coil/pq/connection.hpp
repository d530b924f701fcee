#pragma once

#include <coil/core/async_generator.hpp>
#include <coil/core/task.hpp>
#include <coil/pq/copy_writer.hpp>
#include <coil/pq/detail/session.hpp>
#include <coil/pq/parameters.hpp>
#include <coil/pq/pipeline.hpp>
#include <coil/pq/result.hpp>
#include <coil/pq/statement.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <libpq-fe.h>

namespace coil::pq {

struct notification;

/// Options of a connection.
struct connection_options {
    /// Called on the connection's thread with each notice and warning from the server. By default
    /// they are dropped; nothing is written to standard error. Must not throw.
    std::function<void(std::string_view)> on_notice{};
    /// How long a call that was asked to stop waits for the server to cancel its statement. If this
    /// time expires, the connection is broken.
    std::chrono::nanoseconds cancel_grace = std::chrono::seconds(5);
};

/// A connection to a PostgreSQL server.
///
///     auto c = co_await pq::connection::connect("postgresql://app@db.example/shop");
///     auto people = co_await c.query("select id, name from people where age > $1", 17);
///     for (const pq::row& r : people) use(r["name"].text());
///
/// Move-only; it must not be moved or destroyed while a call is in progress.
///
/// Threading: one call at a time; a concurrent one throws std::logic_error. (A pool has a
/// connection for each task.) It may be used on different contexts one after the other.
///
/// Cancellation: if the task is asked to stop, for example by timeout(), the server is asked to
/// cancel the statement (PQcancel, on default_blocking_pool()), and the call waits for the outcome:
/// it returns the result if the statement has completed nevertheless, and otherwise throws
/// std::system_error with std::errc::operation_canceled. The connection can then be used again; an
/// open transaction has failed. If the server does not answer within cancel_grace, the
/// call throws operation_canceled and the connection is broken. If the frame of a call is
/// destroyed, the statement continues, and the next call cancels it.
///
/// Errors: pq::error for statements that fail, pq::connection_error for a connection that breaks.
class connection {
public:
    /// Connects; `conninfo` is a connection string or URI as for PQconnectdb(), with the same
    /// environment variables, password file and services. Host names are resolved by
    /// coil::net::resolve(), so nothing blocks, except for a host that only a service file names.
    /// Every address of every host is tried in turn. connect_timeout is ignored: use timeout().
    [[nodiscard]] static task<connection> connect(std::string conninfo,
                                                  connection_options options = {});

    /// Executes a statement with values as `parameters` describes them. Without values, `sql` may
    /// contain several statements separated by semicolons: they are one transaction, and the last
    /// result is returned.
    template <class... T>
        requires(!(std::same_as<T, parameters> || ...))
    [[nodiscard]] task<result> query(std::string sql, const T&... values) {
        return session_->run(std::move(sql), {}, parameters::of(values...));
    }
    [[nodiscard]] task<result> query(std::string sql, parameters values) {
        return session_->run(std::move(sql), {}, std::move(values));
    }
    /// Executes a prepared statement.
    template <class... T>
        requires(!(std::same_as<T, parameters> || ...))
    [[nodiscard]] task<result> query(const statement& prepared, const T&... values) {
        return session_->run(prepared.sql(), prepared.name(), parameters::of(values...));
    }
    [[nodiscard]] task<result> query(const statement& prepared, parameters values) {
        return session_->run(prepared.sql(), prepared.name(), std::move(values));
    }
    [[nodiscard]] task<statement> prepare(std::string sql);

    /// Runs `f(c)`, which returns a task, in a transaction: commits when the task has returned, and
    /// returns its value; rolls back if it throws. Inside another transaction() it is a savepoint.
    /// Throws pq::error if the server rolls back instead of committing because a statement failed
    /// and `f` caught the error. After a connection_error, or after operation_canceled if broken()
    /// is true, it is unknown whether a commit has taken place.
    template <std::invocable<connection&> F>
    [[nodiscard]] std::invoke_result_t<F&, connection&> transaction(F f) {
        detail::open_transaction open(*session_);
        co_return co_await detail::with_end(
            in_transaction(open, f), [&](bool failed) { return end_transaction(open, failed); });
    }

    /// Runs `f(p)`, which returns a task, in pipeline mode; returns the value of the task. Results
    /// that the task has not fetched are awaited, and the first error among them is thrown. If the
    /// task throws, outstanding statements are cancelled.
    template <std::invocable<pq::pipeline&> F>
    [[nodiscard]] std::invoke_result_t<F&, pq::pipeline&> pipeline(F f) {
        const detail::session::call exchange(*session_);
        co_await begin_pipeline();
        pq::pipeline p(*session_);
        co_return co_await detail::with_end(f(p),
                                            [&](bool failed) { return end_pipeline(p, failed); });
    }

    /// Executes a `copy ... from stdin`: runs `f(w)`, which returns a task<> and writes the data to
    /// the copy_writer `w`. Returns the number of rows. If `f` throws, nothing is copied.
    template <std::invocable<copy_writer&> F>
    [[nodiscard]] task<std::uint64_t> copy_in(std::string sql, F f) {
        const detail::session::call exchange(*session_, sql);
        co_await begin_copy(sql, PGRES_COPY_IN);
        copy_writer w(*session_);
        std::uint64_t rows = 0;
        co_await detail::with_end(f(w),
                                  [&](bool failed) { return end_copy_in(sql, failed, rows); });
        co_return rows;
    }
    /// Executes a `copy ... to stdout`: a range of the rows as the server sends them; each is valid
    /// until the next one is awaited. The connection is in use until the range has ended or was
    /// destroyed. If the task that awaits a row is asked to stop, the copy is cancelled and the
    /// range ends.
    [[nodiscard]] async_generator<std::string_view> copy_out(std::string sql);

    /// Executes LISTEN. The channel's name is case-sensitive.
    [[nodiscard]] task<> listen(std::string channel);
    /// The notifications that arrive, including those that have arrived during earlier calls.
    /// Between two calls of next() the connection can be used for queries. The range throws
    /// connection_error when the connection breaks.
    ///
    /// No notification is lost if a next() is cancelled, for example by timeout(): the following
    /// next() returns one that has arrived meanwhile, or throws operation_canceled and ends the
    /// range. A new range continues with the next notification.
    [[nodiscard]] async_generator<notification> notifications();

    /// Whether the connection has become unusable.
    [[nodiscard]] bool broken() const noexcept { return session_->broken(); }
    /// Whether the connection is in the state of a new one: open, no call in progress or left
    /// unfinished, no transaction. Makes a system call, which detects that the server has closed
    /// the connection.
    [[nodiscard]] bool is_reusable() const noexcept { return session_->is_reusable(); }
    /// host:port/database
    [[nodiscard]] const std::string& server() const noexcept { return session_->server(); }
    /// libpq's connection, for functions that do not block and change no state:
    /// PQparameterStatus(), PQescapeLiteral(), ...
    [[nodiscard]] ::PGconn* get() const noexcept { return session_->get(); }

private:
    friend class pool;

    explicit connection(std::unique_ptr<detail::session> s) noexcept : session_(std::move(s)) {}

    template <class F>
    std::invoke_result_t<F&, connection&> in_transaction(detail::open_transaction& open, F& f) {
        co_await begin_transaction(open);
        co_return co_await f(*this);
    }
    task<> begin_transaction(detail::open_transaction& open);
    task<> end_transaction(detail::open_transaction& open, bool failed);
    task<> begin_pipeline();
    task<> end_pipeline(pq::pipeline& p, bool failed);
    task<> begin_copy(std::string sql, ::ExecStatusType expected);
    task<> end_copy_in(std::string sql, bool failed, std::uint64_t& rows);

    std::unique_ptr<detail::session> session_;
};

/// A notification that a session has sent with NOTIFY.
struct notification {
    std::string channel;
    std::string payload;
    int server_process = 0; ///< of the session that has executed NOTIFY
};

} // namespace coil::pq
