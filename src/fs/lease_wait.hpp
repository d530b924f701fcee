#pragma once

#include <coil/context/context_clock.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace coil::fs::detail {

/// Limits the total time for which one copy waits for other processes to release their leases on
/// its files: somewhat longer than the kernel lets a holder keep one. Between two attempts to open
/// a file the copy is suspended, so that it holds no thread of the pool.
class lease_wait {
public:
    /// On the context. Overlapping pauses count once. 0, or -ECANCELED if the task was asked to
    /// stop.
    task<io_result> pause() {
        const context_clock::time_point began = context_clock::now();
        const int result = co_await sleep_for(between);
        const context_clock::time_point ended = context_clock::now();
        total_ += ended - std::max(began, ended_);
        ended_ = ended;
        if (total_ > most) {
            is_over_.store(true, std::memory_order_relaxed);
        }
        co_return io_result(result);
    }

    /// Any thread: whether the time is over, and files that are still leased count as failed.
    [[nodiscard]] bool is_over() const noexcept { return is_over_.load(std::memory_order_relaxed); }

private:
    static constexpr std::chrono::milliseconds between{1};
    static constexpr std::chrono::minutes most{1};

    context_clock::time_point ended_{};
    context_clock::duration total_{};
    std::atomic<bool> is_over_{false};
};

} // namespace coil::fs::detail
