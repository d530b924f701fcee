#pragma once

#include <coil/exec/detail/work.hpp>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace coil::detail {

/// Runs each piece of work on a new thread. Threads that have ended are joined when the next one
/// starts, the last ones by the destructor. None is detached, except one that destroys this.
class thread_per_work {
public:
    thread_per_work() noexcept = default;
    thread_per_work(const thread_per_work&) = delete;
    thread_per_work& operator=(const thread_per_work&) = delete;
    /// Waits for all threads except the calling one.
    ~thread_per_work();

    template <class F>
    void execute(F&& f) {
        execute_as_work(*this, std::forward<F>(f));
    }
    /// Throws std::system_error if no thread can be created.
    void submit(work& w);

    /// Refuses all later work: functions are destroyed uncalled, and coroutines that were to resume
    /// here get std::errc::operation_canceled. May be called from any thread.
    void stop() noexcept;

    /// Waits until no thread runs. On one of these threads it throws std::system_error with
    /// std::errc::resource_deadlock_would_occur.
    void join();

    /// The number of running threads. May be called from any thread.
    [[nodiscard]] std::size_t running() const;

private:
    struct record;

    static void join_all(record* ended) noexcept;
    void wait(std::unique_lock<std::mutex>& lock) noexcept;

    mutable std::mutex mutex_;
    std::condition_variable none_left_;
    std::size_t running_ = 0;
    bool stopped_ = false;
    record* ended_ = nullptr; // threads that have ended or are about to
    static thread_local record* mine;
};

} // namespace coil::detail
