#pragma once

#include "stall_places.hpp"
#include "stall_sample.hpp"
#include "watched_pool.hpp"
#include "watched_run.hpp"

#include <coil/context/watchdog.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace coil::detail {

[[nodiscard]] inline std::int64_t now_of_steady_clock() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// In nanoseconds, at least a millisecond.
[[nodiscard]] inline std::int64_t limit_of(const watchdog_options& options) noexcept {
    return std::max<std::int64_t>(options.turn.count(), 1'000'000);
}

/// Watches all contexts of the process from one thread, which exists from the first watched run()
/// until the process exits. Without a watched context it sleeps.
///
/// A tick is half of the smallest limit, at most 100 ms, and four times as long while nothing runs.
/// At each tick it compares the number of each context's turn with that at the previous tick. A
/// context is busy if coroutines were ready at the beginning of its turn; if it is busy with the
/// same turn for longer than the limit, its thread is interrupted for a sample. The end of such a
/// turn is reported, too.
class stall_watchdog {
public:
    static stall_watchdog& instance();

    void add(watched_run& run) noexcept;
    /// Waits until no report about the run is being made. If its last turn was reported, also waits
    /// until the end of that turn has been reported.
    void remove(watched_run& run) noexcept;
    void add(watched_pool& pool) noexcept;
    void remove(watched_pool& pool) noexcept;

    /// May be called from any thread. A JSON document of what it has reported, by place.
    [[nodiscard]] std::string stalls_json() const;
    /// May be called from any thread. All pools that have had a thread.
    [[nodiscard]] std::vector<pool_figures> pools();

    /// Whether the watchdog's thread exists.
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
    void look_at_turn(watched_run& run, std::int64_t now_ns);
    void report_turn(watched_run& run, std::int64_t now_ns);
    void report_end(watched_run& run);
    [[nodiscard]] static bool awaits_in_a_loop(const watched_run& run,
                                               const stall_sample& first) noexcept;
    void pass_on(stall_report&& report, const std::string& place, const watched_run& run,
                 std::int64_t now_ns, reported_stall* to = nullptr);
    static void deliver(const stall_report& report, const watchdog_options& options,
                        bool is_second = false);

    inline static constinit std::atomic<bool> has_thread_ = false;

    std::mutex mutex_;
    std::condition_variable changed_;
    watched_run* first_ = nullptr;
    watched_pool* pools_ = nullptr;
    std::uint64_t last_number_ = 0;
    int idle_ticks_ = 0; // in a row
    bool stops_ = false;
    std::thread thread_;
    stall_places places_;
};

} // namespace coil::detail
