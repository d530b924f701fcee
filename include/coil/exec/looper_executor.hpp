#pragma once

#include <coil/exec/detail/work.hpp>

#include <cstddef>
#include <thread>
#include <utility>

namespace coil {

/// A single thread that runs functions in submission order.
///
///     looper_executor looper;
///     looper.execute([] { load(); });
///     looper.execute([] { show(); });   // on the same thread, after load() has returned
///     looper.shutdown();                // refuses further work, but runs queued work
///     looper.join();
///
/// Threading: execute(), shutdown() and join() may be called from any thread. Everything before
/// execute() happens before the function. Two concurrent submissions run in either order.
///
/// Shutdown: after shutdown() submissions are dropped: a function is destroyed uncalled, and a
/// coroutine that was to resume here gets std::errc::operation_canceled. The destructor drops
/// queued submissions and waits for the running function. On the looper's own thread it cannot
/// wait: it returns immediately, and the thread ends when the running function returns.
class looper_executor {
public:
    /// Throws std::system_error if the thread cannot be created.
    looper_executor();
    looper_executor(const looper_executor&) = delete;
    looper_executor& operator=(const looper_executor&) = delete;
    ~looper_executor();

    template <class F>
    void execute(F&& f) {
        detail::execute_as_work(*this, std::forward<F>(f));
    }
    void submit(detail::work& w) noexcept;

    /// Refuses further submissions; the thread ends when it has nothing left to do. With `wait`,
    /// everything queued still runs; otherwise it is dropped now. Does not block (join() does).
    /// Returns the number of dropped submissions. May be called repeatedly.
    std::size_t shutdown(bool wait = true);

    /// Waits until the thread has ended, which requires shutdown(). On that thread itself it throws
    /// std::system_error with std::errc::resource_deadlock_would_occur.
    void join();

    /// The id of its thread.
    [[nodiscard]] std::thread::id get_id() const noexcept { return thread_.get_id(); }

private:
    struct core;

    core* core_; // shared with the thread
    std::thread thread_;
};

} // namespace coil
