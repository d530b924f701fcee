#pragma once

#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/net/detail/connection_handler.hpp>
#include <coil/net/serve_metrics.hpp>
#include <coil/net/serve_options.hpp>
#include <coil/net/socket.hpp>
#include <coil/sync/channel.hpp>
#include <coil/sync/semaphore.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace coil::net::detail {

struct server;
struct share;

/// An accepted connection, from accept() to the end of its handler.
class open_connection {
public:
    /// Accepted on the context of `on`.
    open_connection(std::shared_ptr<server> of, share& on) noexcept;
    open_connection(open_connection&& other) noexcept
        : server_(std::move(other.server_)), on_(other.on_),
          has_room_(std::exchange(other.has_room_, false)) {}
    open_connection& operator=(open_connection&&) = delete;
    ~open_connection();

    /// Waits for a place among max_connections.
    task<> enter();
    /// Counts it on another context.
    void move_to(share& other) noexcept;

private:
    std::shared_ptr<server> server_; // null: moved from
    share* on_;
    bool has_room_ = false;
};

/// A connection that does not have a handler yet.
struct arrival {
    socket peer;
    open_connection connection;
};

/// What one context has of a server.
struct alignas(64) share {
    /// The connections that have not ended, including those that are being handed over to this
    /// context.
    std::atomic<std::size_t> open{0};
    /// Handed over by other contexts. Closed when the context no longer starts connections.
    channel<arrival> arrivals{unbounded};
};

/// The state shared by the contexts of a server.
struct server {
    server(connection_handler h, serve_options o, std::size_t contexts)
        : handler(std::move(h)), options(std::move(o)),
          room(static_cast<std::ptrdiff_t>(
              std::clamp<std::size_t>(options.max_connections, 1, 1U << 30U))),
          shares(contexts) {
        if (!options.meter) {
            options.meter = std::make_shared<serve_meter>();
        }
    }

    [[nodiscard]] serve_meter& meter() const noexcept { return *options.meter; }
    [[nodiscard]] bool balances() const noexcept {
        return options.balancing == balancing::least_connections && shares.size() > 1;
    }
    /// Hands a connection that was accepted `here` over to the context with the fewest connections,
    /// if that one has clearly fewer. Otherwise returns false.
    [[nodiscard]] bool hand_over(arrival& accepted, share& here) {
        if (!balances()) {
            return false;
        }
        const auto open = [](const share& at) { return at.open.load(std::memory_order_relaxed); };
        share& least = *std::ranges::min_element(shares, {}, open);
        const std::size_t fewest = open(least);
        // A smaller difference is not worth the hand-over, unless a context has nothing to do.
        const std::size_t tolerated = fewest == 0 ? 0 : 1 + fewest / 16;
        if (open(here) - 1 <= fewest + tolerated) { // without the connection itself
            return false;
        }
        accepted.connection.move_to(least); // first: its handler may end before try_send() returns
        if (!least.arrivals.try_send(std::move(accepted))) {
            // The server is stopping, and the connection is still here.
            accepted.connection.move_to(here); // NOLINT(bugprone-use-after-move)
            return false;
        }
        meter().count_moved();
        return true;
    }

    connection_handler handler;
    serve_options options;
    counting_semaphore<> room;
    std::vector<share> shares;
    inplace_stop_source stopping;  // ends accepting, on all contexts
    inplace_stop_source abandoned; // the frame of serve() was destroyed: no grace period
};

/// A context's share, for the task that serves there. When the task has ended or was destroyed,
/// even before it began, no connection can be handed over to it, and those that were are closed.
/// They refer to the server, which has the channel, so they would otherwise exist forever.
class share_owner {
public:
    share_owner(std::shared_ptr<server> of, std::size_t i) noexcept
        : server_(std::move(of)), share_(&server_->shares[i]) {}
    share_owner(share_owner&&) noexcept = default;
    share_owner& operator=(share_owner&&) = delete;
    ~share_owner() {
        if (server_) {
            share_->arrivals.close();
            while (share_->arrivals.try_recv()) {
            }
        }
    }

    [[nodiscard]] share& operator*() const noexcept { return *share_; }
    [[nodiscard]] share* operator->() const noexcept { return share_; }

private:
    std::shared_ptr<server> server_; // null: moved from
    share* share_;
};

inline open_connection::open_connection(std::shared_ptr<server> of, share& on) noexcept
    : server_(std::move(of)), on_(&on) {
    server_->meter().count_accepted();
    on_->open.fetch_add(1, std::memory_order_relaxed);
}

inline open_connection::~open_connection() {
    if (server_) {
        on_->open.fetch_sub(1, std::memory_order_relaxed);
        server_->meter().count_closed();
        if (has_room_) {
            server_->room.release();
        }
    }
}

inline task<> open_connection::enter() {
    if (!server_->room.try_acquire()) {
        server_->meter().count_held_back();
        co_await server_->room.acquire();
    }
    has_room_ = true;
}

inline void open_connection::move_to(share& other) noexcept {
    other.open.fetch_add(1, std::memory_order_relaxed);
    on_->open.fetch_sub(1, std::memory_order_relaxed);
    on_ = &other;
}

} // namespace coil::net::detail
