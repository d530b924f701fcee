#pragma once

#include "stall_places.hpp"
#include "stall_sample.hpp"
#include "watched_run.hpp"

#include <coil/context/watchdog.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace coil::detail {

class watched_pool;

/// Watches all contexts of the process from one thread, which exists from the first watched run()
/// until the process exits. Without a watched context it sleeps.
///
/// At each tick, half of the smallest limit, or less often while nothing runs, it compares the
/// number of turns of each context with the one before. A context is busy if coroutines were ready
/// at the beginning of its turn; if it is busy with the same turn for longer than the limit, its
/// thread is interrupted for a sample.
class stall_watchdog {
public:
    static stall_watchdog& instance();

    void add(watched_run& run) noexcept;
    /// Waits for the end of a report about it.
    void remove(watched_run& run) noexcept;
    void add(watched_pool& pool) noexcept;
    void remove(watched_pool& pool) noexcept;

    /// Whether its thread exists.
    [[nodiscard]] static bool has_thread() noexcept { return has_thread_; }

private:
    stall_watchdog();

    void start() noexcept;
    void stop() noexcept;
    void reset_in_child() noexcept;
    void run() noexcept;
    [[nodiscard]] std::int64_t tick_ns() const noexcept;
    [[nodiscard]] static bool is_idle(const watched_run& run) noexcept;
    void look_at(watched_run& run, std::int64_t now_ns);
    void look_at(watched_pool& pool, std::int64_t now_ns);
    void look_at_delays(watched_run& run, std::int64_t now_ns);
    void report_turn(watched_run& run, std::int64_t now_ns);
    [[nodiscard]] static bool awaits_in_a_loop(const watched_run& run,
                                               const stall_sample& first) noexcept;
    void pass_on(stall_report&& report, const std::string& place, const watched_run& run,
                 std::int64_t now_ns);
    static void deliver(const stall_report& report, const watchdog_options& options);

    inline static constinit std::atomic<bool> has_thread_ = false;

    std::mutex mutex_;
    std::condition_variable changed_;
    watched_run* first_ = nullptr;
    watched_pool* pools_ = nullptr;
    std::uint64_t last_number_ = 0;
    int idle_ticks_ = 0; // in a row
    bool stops_ = false;
    std::thread thread_;
    stall_places places_; // used by the thread only
};

} // namespace coil::detail
