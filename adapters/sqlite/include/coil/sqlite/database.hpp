#pragma once

#include <coil/core/task.hpp>
#include <coil/sqlite/options.hpp>
#include <coil/sqlite/result.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil::sqlite {

class connection;

namespace detail {

class core;
struct handle;

} // namespace detail

/// A SQLite database, used by many tasks. Statements are executed on the threads of
/// default_blocking_pool(), so that a context never waits for a disk or a lock.
///
///     sqlite::database db("shop.db");
///     auto people = co_await db.query("select id, name from people where age > ?", 17);
///     for (const sqlite::row& r : people) {
///         auto [id, name] = r.as<int, std::string_view>();
///     }
///
/// Connections are opened when they are needed; a call waits, first come first served, while
/// options::connections of them are in use. A private database (":memory:" or "") has only one
/// connection.
///
/// Threading: all members may be called on any context. Lifetime: the database may be destroyed
/// while calls are in progress.
///
/// Cancellation: if the task is asked to stop, for example by timeout(), the statement is
/// interrupted (sqlite3_interrupt), even while it waits for a lock. If the statement has completed
/// nevertheless, the call returns the result; otherwise it throws std::system_error with
/// std::errc::operation_canceled. If the frame of a call is destroyed, the statement is interrupted
/// and not waited for.
///
/// Errors: sqlite::error, which names the database and the statement.
class database {
public:
    /// Does not open the file yet. `path` may be a URI, such as "file:shop.db?mode=ro".
    explicit database(std::string path, options o = {});

    /// Executes a statement with the parameters ?1, ?2, ...: integers, floating-point numbers,
    /// text, sqlite::blob, nullptr, or std::optional. Without parameters, `sql` may contain several
    /// statements; the last result is returned.
    template <class... T>
    [[nodiscard]] task<result> query(std::string sql, const T&... values) {
        return run(core_, std::move(sql), {detail::to_value(values)...});
    }

    /// Runs `f(c)`, which returns a task, in a transaction on one connection: commits when the task
    /// has returned, and returns its value; rolls back if it throws. `begin` is the statement that
    /// starts the transaction. The default waits for the write lock; a transaction that only reads
    /// can use "begin".
    template <std::invocable<connection&> F>
    [[nodiscard]] std::invoke_result_t<F&, connection&>
    transaction(F f, std::string begin = "begin immediate");

private:
    static task<result> run(std::shared_ptr<detail::core> core, std::string sql,
                            std::vector<value> values);
    static task<connection> acquire(std::shared_ptr<detail::core> core);

    std::shared_ptr<detail::core> core_;
};

/// The connection of a transaction. Used by the function that it was passed to, one call at a time.
class connection {
public:
    /// Like database::query().
    template <class... T>
    [[nodiscard]] task<result> query(std::string sql, const T&... values) {
        return run(std::move(sql), {detail::to_value(values)...});
    }

private:
    friend class database;

    explicit connection(std::shared_ptr<detail::handle> h) noexcept : handle_(std::move(h)) {}

    task<result> run(std::string sql, std::vector<value> values);
    task<> commit();
    task<> roll_back();
    static result execute(detail::handle& h, const std::string& sql,
                          const std::vector<value>& values);

    std::shared_ptr<detail::handle> handle_; // its deleter returns the connection
};

template <std::invocable<connection&> F>
std::invoke_result_t<F&, connection&> database::transaction(F f, std::string begin) {
    using type = typename std::invoke_result_t<F&, connection&>::value_type;
    connection c = co_await acquire(core_);
    co_await c.run(std::move(begin), {});
    std::exception_ptr failure;
    [[maybe_unused]] std::conditional_t<std::is_void_v<type>, bool, std::optional<type>> outcome{};
    try {
        if constexpr (std::is_void_v<type>) {
            co_await f(c);
        } else {
            outcome.emplace(co_await f(c));
        }
        co_await c.commit();
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        co_await c.roll_back();
        std::rethrow_exception(failure);
    }
    if constexpr (!std::is_void_v<type>) {
        co_return std::move(*outcome);
    }
}

} // namespace coil::sqlite
