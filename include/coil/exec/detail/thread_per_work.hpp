#pragma once

#include <coil/exec/detail/work.hpp>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace coil::detail {

/// A thread for each work. Those that have ended are joined when the next begins, the last of them
/// at the end: none is left to itself.
class thread_per_work {
public:
    thread_per_work() noexcept = default;
    thread_per_work(const thread_per_work&) = delete;
    thread_per_work& operator=(const thread_per_work&) = delete;
    /// Waits for all threads, but for the one that calls it.
    ~thread_per_work();

    template <class F>
    void execute(F&& f) {
        execute_as_work(*this, std::forward<F>(f));
    }
    /// Throws std::system_error when no thread is to be had.
    void submit(work& w);

    /// From now on nothing is taken: a function is destroyed uncalled, and a coroutine that was to
    /// go on here learns it (std::errc::operation_canceled). Any thread.
    void stop() noexcept;

    /// Waits until no thread runs. Throws std::system_error with
    /// std::errc::resource_deadlock_would_occur on one of them.
    void join();

    /// How many threads run. Any thread.
    [[nodiscard]] std::size_t running() const;

private:
    struct record;

    static void join_all(record* ended) noexcept;
    void wait(std::unique_lock<std::mutex>& lock) noexcept;

    mutable std::mutex mutex_;
    std::condition_variable none_left_;
    std::size_t running_ = 0;
    bool stopped_ = false;
    record* ended_ = nullptr; // whose threads are about to end, or have
    static thread_local record* mine;
};

} // namespace coil::detail
