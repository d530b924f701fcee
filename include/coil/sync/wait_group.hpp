#pragma once

#include <coil/sync/detail/group.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <cstddef>
#include <limits>
#include <system_error>

namespace coil {

/// Counts pieces of work in progress and lets coroutines wait until the count is zero, like Go's
/// sync.WaitGroup.
///
///     coil::wait_group jobs;
///     for (auto& item : items) {
///         jobs.add();
///         co_spawn(work(item, jobs));     // ... jobs.done();
///     }
///     co_await jobs.wait();
///
/// A wait_group may be reused. An add() that raises the count from zero must happen before the
/// wait() that is to wait for that work: a wait() that finds the count at zero completes
/// immediately.
///
/// Threading: all members may be called from any context and any thread. A waiter resumes on its
/// own context. A waiter that has resumed may destroy the group even if the last done() has not yet
/// returned on another thread.
///
/// Cancellation: if the waiting task is asked to stop, wait() throws std::system_error with
/// std::errc::operation_canceled, unless the count reached zero first. If the stop was requested
/// before the await, wait() throws in any case.
class wait_group {
public:
    constexpr explicit wait_group(std::ptrdiff_t count = 0) noexcept : group_(count) {
        if (count < 0) [[unlikely]] {
            end_with_too_many();
        }
    }
    wait_group(const wait_group&) = delete;
    wait_group& operator=(const wait_group&) = delete;
    ~wait_group() = default;
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("wait for it: co_await g.wait()");

    /// A negative `n` acts as -n calls of done(), atomically.
    void add(std::ptrdiff_t n = 1) noexcept {
        if (n >= 0) [[likely]] {
            group_.add(n);
        } else if (n == std::numeric_limits<std::ptrdiff_t>::min() || !group_.done(-n)) {
            end_with_too_many();
        }
    }
    /// Calling done() more often than the count allows terminates the program with a message.
    void done() noexcept {
        if (!group_.done()) [[unlikely]] {
            end_with_too_many();
        }
    }

    auto wait() noexcept { return detail::sync_awaitable<awaiter, group>(group_); }

private:
    using group = detail::basic_group<detail::sync_waiter>;

    [[noreturn]] static void end_with_too_many() noexcept {
        detail::end_with_misuse("wait_group::done() was called more often than add() allows.");
    }

    class awaiter : public detail::sync_awaiter<awaiter> {
    public:
        explicit awaiter(group& source) noexcept : group_(source) {}
        ~awaiter() { end_wait(); }

        void await_resume() { this->throw_if_cancelled("wait_group"); }

    private:
        friend class detail::sync_awaiter<awaiter>;
        static constexpr detail::waited_object waits_for = detail::waited_object::wait_group;
        static constexpr bool gives_back = false;

        [[nodiscard]] bool take_now() noexcept { return group_.passes(); }
        [[nodiscard]] group& queue() noexcept { return group_; }
        void give_back() noexcept {}

        group& group_;
    };

    group group_;
};

} // namespace coil
