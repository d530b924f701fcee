#pragma once

#include <coil/core/task.hpp>
#include <coil/hiredis/connection.hpp>
#include <coil/interop/detail/pool_lease.hpp>
#include <coil/sync/semaphore.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace coil::hiredis {

/// Connections to one server that tasks borrow for transactions and blocking commands.
///
///     hiredis::pool pool({.port = 6379}, 8);
///     auto c = co_await pool.acquire();
///     co_await c->call("BLPOP", "jobs", 0);
///
/// A connection is established when none is idle and fewer than the maximum are in use. It is
/// returned to the pool when the lease is destroyed. If it is then not is_clean(), because it
/// broke, a command was cancelled, or a transaction was not ended, it is closed instead, so that
/// the next lease gets a new connection. Nothing else reconnects, and failed commands are not
/// repeated.
///
/// Threading: one context, on which it is also destroyed; its leases must not outlive it.
class pool {
public:
    /// A connection that is borrowed, `*lease`. Move-only.
    using lease = coil::detail::pool_lease<pool, connection, counting_semaphore<>::guard>;

    /// Does not connect yet. Precondition: max_connections > 0. Throws std::bad_alloc.
    explicit pool(options to, std::size_t max_connections = 8)
        : options_(std::move(to)), permits_(static_cast<std::ptrdiff_t>(max_connections)) {
        idle_.reserve(max_connections); // so that returning a connection cannot fail
    }
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;
    ~pool() = default;

    /// Waits until a connection is available: an idle one, or a new one. Errors are those of
    /// connection::connect(). Cancellation: std::errc::operation_canceled; takes no connection.
    [[nodiscard]] task<lease> acquire();

    /// The number of open connections that are not in use.
    [[nodiscard]] std::size_t idle() const noexcept { return idle_.size(); }

private:
    friend lease;
    void give_back(connection c) noexcept {
        if (c.is_clean()) {
            idle_.push_back(std::move(c));
        }
    }

    options options_;
    std::vector<connection> idle_;
    counting_semaphore<> permits_;
};

} // namespace coil::hiredis
