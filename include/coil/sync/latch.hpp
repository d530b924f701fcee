#pragma once

#include <coil/core/config.hpp>
#include <coil/sync/detail/baton_awaiter.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <limits>

namespace coil {

/// std::latch for coroutines: a single-use counter. wait() completes when the counter reaches zero.
///
///     coil::latch done{workers};
///     // each worker: ... done.count_down();
///     co_await done.wait();
///
/// Threading: all members may be called from any context and any thread. A waiter resumes on its
/// own context. A waiter that has resumed may destroy the latch even if the last count_down() has
/// not yet returned on another thread.
///
/// Cancellation: if the waiting task is asked to stop, wait() throws std::system_error with
/// std::errc::operation_canceled, unless the counter reached zero first. If the stop was requested
/// before the await, wait() throws in any case. A cancelled arrive_and_wait() has still counted
/// down.
class latch {
public:
    /// A negative `expected` terminates the program with a message.
    constexpr explicit latch(std::ptrdiff_t expected) noexcept
        : count_(expected), baton_(expected == 0) {
        if (expected < 0) [[unlikely]] {
            detail::end_with_misuse("a latch must be constructed with 0 or more.");
        }
    }
    latch(const latch&) = delete;
    latch& operator=(const latch&) = delete;
    latch() COIL_DELETE_COPY("pass the number of calls of count_down(): latch done(3)");
    ~latch() = default;
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("wait for it: co_await l.wait()");

    [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept {
        return std::numeric_limits<std::ptrdiff_t>::max();
    }

    /// May be called from any thread. Precondition: `n` is between 0 and the counter; otherwise the
    /// program terminates with a message.
    void count_down(std::ptrdiff_t n = 1) noexcept {
        const std::ptrdiff_t before = count_.fetch_sub(n, std::memory_order_acq_rel);
        if (n < 0 || n > before) [[unlikely]] {
            detail::end_with_misuse(
                "latch::count_down() was called with more than the remaining count.");
        }
        if (before == n && n > 0) {
            baton_.open();
        }
    }
    /// Returns whether the counter is zero.
    [[nodiscard]] bool try_wait() const noexcept { return baton_.is_open(); }

    auto wait() noexcept {
        return detail::sync_awaitable<detail::baton_awaiter<detail::latch_kind>, detail::baton>(
            baton_);
    }
    /// Counts down by `n` when awaited, then waits.
    auto arrive_and_wait(std::ptrdiff_t n = 1) noexcept { return arriving_awaitable(*this, n); }

private:
    class arriving_awaiter : public detail::baton_awaiter<detail::latch_kind> {
    public:
        arriving_awaiter(latch& source, std::ptrdiff_t n) noexcept
            : baton_awaiter(source.baton_), latch_(source), n_(n) {}

        template <class P>
        bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
            latch_.count_down(n_);
            return baton_awaiter::await_suspend(coroutine);
        }

    private:
        latch& latch_;
        std::ptrdiff_t n_;
    };

    class [[nodiscard("did you forget to co_await?")]] arriving_awaitable {
    public:
        arriving_awaitable(latch& source, std::ptrdiff_t n) noexcept : latch_(&source), n_(n) {}
        [[nodiscard]] arriving_awaiter operator co_await() const noexcept { return {*latch_, n_}; }

    private:
        latch* latch_;
        std::ptrdiff_t n_;
    };

    std::atomic<std::ptrdiff_t> count_;
    detail::baton baton_;
};

} // namespace coil
