#pragma once

#include <coil/context/detail/live_metrics.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace coil::detail {

/// The activity of a pool of threads.
struct pool_figures {
    std::string name{};
    std::uint64_t number = 1; // among the pools of this name
    std::uint64_t threads = 0;
    std::uint64_t idle_threads = 0;
    std::uint64_t queued = 0;
    std::uint64_t waiting = 0;
    std::uint64_t threads_made = 0;
    std::uint64_t delayed = 0;
    std::uint64_t full_reports = 0;
};

/// Appends the figures in the Prometheus text format, each pool with its labels.
void write_pools(std::string& out,
                 std::span<const std::pair<pool_figures, std::string>> figures_and_labels);

/// Appends the figures of all pools that have had a thread. Throws std::bad_alloc.
void write_pools(std::string& out);

/// A pool of threads as the watchdog sees it.
class watched_pool {
public:
    watched_pool() = default;
    watched_pool(const watched_pool&) = delete;
    watched_pool& operator=(const watched_pool&) = delete;

    /// Called by the watchdog's thread: whether every thread that the pool may have is busy, and
    /// calls wait. nullopt if it would have to wait for a lock: a fork() takes the locks of the
    /// watchdog and of the pool in any order.
    [[nodiscard]] virtual std::optional<bool> is_full() const noexcept = 0;
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;

    /// May be called by any thread. nullopt for the same reason.
    [[nodiscard]] virtual std::optional<pool_figures> figures() const = 0;

    /// How often the watchdog has found the pool full for a long time.
    [[nodiscard]] std::uint64_t full_reports() const noexcept { return full_reports_.get(); }

    /// Called by the pool when it creates its first thread, and before it is destroyed.
    void begin_watching() noexcept;
    void end_watching() noexcept;

protected:
    ~watched_pool() = default;

private:
    friend class stall_watchdog;

    watched_pool* next_ = nullptr;
    std::uint64_t number_ = 1; // constant while the pool exists
    std::int64_t full_since_ns_ = 0;
    counter full_reports_;
};

} // namespace coil::detail
