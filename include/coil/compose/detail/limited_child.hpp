#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/compose/detail/child.hpp>
#include <coil/compose/detail/child_group.hpp>
#include <coil/context/detail/timer_wheel.hpp>
#include <coil/context/multishot.hpp>
#include <coil/context/operation.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/this_task.hpp>
#include <coil/io/eager.hpp>

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace coil::detail {

[[noreturn]] void throw_timed_out();

/// The result of timeout(work, d) after the limit has expired, for work that returns a T. If there
/// is no make() for T, the await throws. `completed` is the result of work that completed although
/// it was asked to stop, or null.
template <class T>
struct expired_result {};
template <>
struct expired_result<io_result> {
    static io_result make(io_result*) noexcept { return io_result(-ETIMEDOUT); }
};
template <>
struct expired_result<checked_io_result> {
    static checked_io_result make(checked_io_result*) noexcept {
        return checked_io_result(-ETIMEDOUT);
    }
};
template <class T>
concept has_expired_result = requires(T* completed) {
    { expired_result<T>::make(completed) } -> std::same_as<T>;
};

/// A child and the timer that stops it.
template <class Kept>
class time_limit final : timer_call, nested_await {
    using child_t = child<Kept>;
    using result_type = typename child_t::result_type;

public:
    time_limit(std::remove_reference_t<Kept>& awaitable, std::int64_t ns,
               sleep_awaitable::from origin) noexcept
        : timer_call(&expire), group_(child_group::decided_by::first_error),
          child_(group_, awaitable), ns_(ns), origin_(origin) {}
    time_limit(const time_limit&) = delete;
    time_limit& operator=(const time_limit&) = delete;
    ~time_limit() { disarm(); }

    [[nodiscard]] static bool await_ready() noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        group_.begin(waiter, stop_token_of(waiter), *this);
        event_loop& loop = group_.loop();
        const std::int64_t deadline =
            origin_ == sleep_awaitable::from::now ? deadline_after(loop.now_ns(), ns_) : ns_;
        group_.set_deadline(deadline);
        child_.start();
        if (!group_.must_wait()) {
            return false;
        }
        if (!loop.arm(*this, deadline)) {
            outcome_ = outcome::no_memory; // do not run the work without its limit
            group_.finish_early(false);
        }
        return true;
    }

    result_type await_resume() {
        disarm();
        group_.resumed();
        if (outcome_ == outcome::in_time) [[likely]] {
            group_.rethrow();
            return child_.take();
        }
        if (outcome_ == outcome::no_memory) {
            group_.report_error();
            throw std::bad_alloc();
        }
        if constexpr (has_expired_result<result_type>) {
            if (group_.has_failed()) {
                group_.report_error();
                return expired_result<result_type>::make(nullptr);
            }
            result_type completed = child_.take();
            return expired_result<result_type>::make(&completed);
        } else {
            group_.report_error();
            throw_timed_out();
        }
    }

    /// Returns whether await_resume() will throw.
    [[nodiscard]] bool has_failed() const noexcept {
        if (outcome_ == outcome::expired) {
            return !has_expired_result<result_type>;
        }
        return outcome_ != outcome::in_time || group_.has_failed();
    }
    void discard() noexcept {
        disarm();
        group_.resumed();
        group_.report_error();
    }

private:
    enum class outcome : unsigned char { in_time, expired, no_memory };

    promise_base* next_below() noexcept final { return child_.below(); }
    void destroy_below(promise_base&) noexcept final { child_.destroy_frame(); }
    void visit_below(child_visitor& visitor) final { child_.visit(visitor); }

    static void expire(timer_node& node) noexcept {
        auto& self = static_cast<time_limit&>(node);
        if (!self.group_.is_over()) {
            self.outcome_ = outcome::expired;
            if constexpr (has_expired_result<result_type>) {
                self.group_.expire();
            } else {
                self.group_.finish_early(true);
            }
        }
    }
    void disarm() noexcept {
        if (armed()) {
            group_.loop().disarm(*this);
        }
    }

    child_group group_;
    child_t child_;
    std::int64_t ns_;
    sleep_awaitable::from origin_;
    outcome outcome_ = outcome::in_time;
};

template <class T>
inline constexpr bool is_limited_otherwise = is_io_awaitable<T>;
template <class E>
inline constexpr bool is_limited_otherwise<eager_operation<E>> = true;
template <class Stream>
inline constexpr bool is_limited_otherwise<multishot_next<Stream>> = true;

/// The awaitables that timeout(work, d) limits by running them as a child: tasks, and all others
/// that are not ring operations.
template <class A>
concept limited_by_child = awaitable<kept<A>> && !is_limited_otherwise<std::remove_cvref_t<A>>;

} // namespace coil::detail
