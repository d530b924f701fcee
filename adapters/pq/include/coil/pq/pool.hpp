#pragma once

#include <coil/core/task.hpp>
#include <coil/interop/detail/pool_lease.hpp>
#include <coil/pq/connection.hpp>
#include <coil/sync/semaphore.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil::pq {

/// Options of a pool.
struct pool_options {
    /// The maximum number of connections. Precondition: not 0.
    std::size_t size = 8;
    /// A connection that was idle for longer than this is checked with a round trip before it is
    /// used. (Without a round trip, only a close by the server is detected.)
    std::chrono::nanoseconds check_after = std::chrono::seconds(30);
    /// The limit for that round trip.
    std::chrono::nanoseconds check_limit = std::chrono::seconds(2);
    /// Prepares a new connection, for example by `set search_path`. May be empty.
    std::function<task<>(pq::connection&)> on_connect{};
    connection_options connection{};
};

/// Connections that are shared by many tasks.
///
///     pq::pool db("postgresql://app@db.example/shop", {.size = 16});
///     auto r = co_await db.query("select count(*) from people");
///     {
///         auto c = co_await db.acquire();     // for several statements on one connection
///         co_await c->query("create temp table x (i int)");
///     }
///
/// Connections are opened when they are needed. acquire() waits, first come first served, while
/// `size` of them are in use. A connection that is returned broken, inside a transaction or with
/// a call left unfinished is closed. Other state, such as `set` and temporary tables, is not reset.
///
/// Threading: all members may be called on any context. Lifetime: the pool must outlive its leases
/// and the calls in progress. Cancellation: as for connection; a task that waits for a connection
/// stops waiting immediately. Errors: those of connection::connect().
class pool {
public:
    /// The exclusive use of a connection, `*lease`, which its destructor returns to the pool.
    /// Move-only.
    using lease = coil::detail::pool_lease<pool, connection, counting_semaphore<>::guard>;

    /// Does not connect yet.
    explicit pool(std::string conninfo, pool_options options = {});

    [[nodiscard]] task<lease> acquire();

    /// connection::query() on any connection.
    template <class... T>
        requires(!(std::same_as<T, parameters> || ...))
    [[nodiscard]] task<result> query(std::string sql, const T&... values) {
        return run(std::move(sql), parameters::of(values...));
    }
    /// connection::transaction() on any connection.
    template <std::invocable<connection&> F>
    [[nodiscard]] std::invoke_result_t<F&, connection&> transaction(F f) {
        lease c = co_await acquire();
        co_return co_await c->transaction(std::move(f));
    }

    /// The number of idle connections.
    [[nodiscard]] std::size_t idle() const;
    /// Closes the idle connections, for example after a failover.
    void close_idle();

private:
    friend lease;

    struct idle_connection {
        connection c;
        std::chrono::steady_clock::time_point since;
    };

    task<result> run(std::string sql, parameters values);
    task<bool> check(idle_connection& candidate);
    void give_back(connection c) noexcept;

    const std::string conninfo_;
    const pool_options options_;
    counting_semaphore<> permits_;
    mutable std::mutex mutex_;
    std::vector<idle_connection> idle_; // most recently used last
};

} // namespace coil::pq
