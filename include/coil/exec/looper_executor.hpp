#pragma once

#include <coil/exec/detail/work.hpp>

#include <cstddef>
#include <thread>
#include <utility>

namespace coil {

/// One thread that runs one thing after the other, in the order in which they were submitted.
///
///     looper_executor looper;
///     looper.execute([] { load(); });
///     looper.execute([] { show(); });   // on the same thread, after load() has returned
///     looper.shutdown();                // takes no more, but does what it has
///     looper.join();
///
/// Threading: execute(), shutdown() and join() may be called from any thread; everything before
/// execute() happens before what it runs. Of two that are submitted at once, either is first.
///
/// Shutdown: what is submitted after shutdown() is dropped: a function is destroyed uncalled, and a
/// coroutine that was to go on here learns it (std::errc::operation_canceled). The destructor drops
/// what is queued and waits for what runs. On the looper's own thread, where that cannot be waited
/// for, it returns at once; the thread ends when the function that runs returns.
class looper_executor {
public:
    /// Throws std::system_error when no thread is to be had.
    looper_executor();
    looper_executor(const looper_executor&) = delete;
    looper_executor& operator=(const looper_executor&) = delete;
    ~looper_executor();

    template <class F>
    void execute(F&& f) {
        detail::execute_as_work(*this, std::forward<F>(f));
    }
    void submit(detail::work& w) noexcept;

    /// From now on nothing is taken, and the thread ends when nothing is left to do. With `wait`,
    /// all that is queued is done before that; without, it is dropped here and now. Does not wait
    /// itself, join() does. How many were dropped. May be called again.
    std::size_t shutdown(bool wait = true);

    /// Waits until the thread has ended, which it does after shutdown(). Throws std::system_error
    /// with std::errc::resource_deadlock_would_occur on that thread itself.
    void join();

    /// Of its thread.
    [[nodiscard]] std::thread::id get_id() const noexcept { return thread_.get_id(); }

private:
    struct core;

    core* core_; // shared with the thread
    std::thread thread_;
};

} // namespace coil
