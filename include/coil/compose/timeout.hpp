#pragma once

#include <coil/context/operation.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/task.hpp>
#include <coil/io/eager.hpp>
#include <coil/uring/prep.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <utility>

#include <sys/socket.h>

namespace coil {

namespace detail {

/// An element and how long it may take. Alone it is limited by the context's timers; inside a chain
/// only the kernel knows when it starts, so there it becomes a kernel_timed_element.
template <element Element>
class timed_element : public Element {
public:
    timed_element(Element&& e, std::int64_t ns, sleep_awaitable::from origin) noexcept
        : Element(std::move(e)), ns_(ns), origin_(origin) {}

    [[nodiscard]] std::int64_t ns() const noexcept { return ns_; }
    [[nodiscard]] sleep_awaitable::from origin() const noexcept { return origin_; }

    /// The same limit on a wrapped element, see wrapped().
    template <template <class> class Wrapper>
    [[nodiscard]] auto wrap() && noexcept {
        auto inside = wrapped<Wrapper>(std::move(static_cast<Element&>(*this)));
        return timed_element<decltype(inside)>(std::move(inside), ns_, origin_);
    }

private:
    std::int64_t ns_;
    sleep_awaitable::from origin_;
};

template <class T>
inline constexpr bool is_timed = false;
template <class E>
inline constexpr bool is_timed<timed_element<E>> = true;

inline void link_to_next(ring_entry& entry) noexcept {
    entry.request.flags |= uring::sqe_flag::io_link;
    const auto opcode = static_cast<uring::opcode>(entry.request.opcode);
    if (opcode == uring::opcode::send || opcode == uring::opcode::sendmsg ||
        opcode == uring::opcode::send_zc || opcode == uring::opcode::sendmsg_zc) {
        // A short send would be taken for success, and the rest of the data would be lost unseen.
        entry.request.msg_flags |= MSG_WAITALL;
    }
}

/// An element inside a chain, followed by the linked timeout that limits it.
template <element Element>
class kernel_timed_element : public Element {
    static_assert(Element::entries == 1, "inside a chain, limit single operations: "
                                         "timeout(a, 1s) && timeout(b, 1s)");

public:
    static constexpr std::uint16_t entries = 2;
    static constexpr bool has_link_timeout = true;

    explicit kernel_timed_element(timed_element<Element>&& timed) noexcept
        : Element(std::move(static_cast<Element&>(timed))) {
        limit_.tv_sec = timed.ns() / 1'000'000'000;
        limit_.tv_nsec = timed.ns() % 1'000'000'000;
        absolute_ = timed.origin() == sleep_awaitable::from::epoch;
    }

    ring_entry& arm() noexcept {
        ring_entry& limited = Element::arm();
        link_to_next(limited);
        limit_entry_.request =
            uring::prep::link_timeout(&limit_, absolute_ ? uring::timeout_flag::abs : 0);
        limit_entry_.is_limit = true;
        limited.next = &limit_entry_;
        return limited;
    }

private:
    uring::timespec limit_{};
    ring_entry limit_entry_;
    bool absolute_ = false;
};

template <element Element>
kernel_timed_element(timed_element<Element>&&) -> kernel_timed_element<Element>;

/// The await of a limited operation: see timeout(op, d).
template <element Element>
class io_awaiter<timed_element<Element>> : protected io_wait, timer_node {
public:
    explicit io_awaiter(timed_element<Element>&& e) noexcept
        : timer_node(&expire), element_(std::move(e)) {}
    io_awaiter(const io_awaiter&) = delete;
    io_awaiter& operator=(const io_awaiter&) = delete;
    ~io_awaiter() {
        if (!under_way()) [[likely]] {
            return;
        }
        if (armed()) { // an eager one may outlive its context, which disarms it then
            loop().disarm(*this);
        }
        release_kernel();
        element_.drop();
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        launch(required_loop(), waiter, stop_token_of(waiter));
    }

    auto await_resume() noexcept {
        if (armed()) {
            loop().disarm(*this);
        }
        resumed();
        if constexpr (has_link_timeout<Element>) {
            return timed_out_if(expired_ || link_timeout_expired(), element_.result());
        } else {
            return timed_out_if(expired_, element_.result());
        }
    }

    void discard() noexcept {
        if (armed()) {
            loop().disarm(*this);
        }
        resumed();
        element_.drop();
    }

protected:
    void launch(event_loop& loop, std::coroutine_handle<> waiter,
                inplace_stop_token token) noexcept {
        start(loop, waiter, token, element_.arm(), Element::entries, needs_every_result<Element>);
        if (pending()) {
            const std::int64_t deadline = element_.origin() == sleep_awaitable::from::now
                                              ? deadline_after(loop.now_ns(), element_.ns())
                                              : element_.ns();
            if (!loop.arm(*this, deadline)) {
                cancel(); // no memory for timers: an operation without its limit would be worse
            }
        }
    }

private:
    static void expire(timer_node& node) noexcept {
        auto& self = static_cast<io_awaiter&>(node);
        // A stop that came first is what ends the operation.
        self.expired_ = self.pending() && !self.is_being_cancelled();
        self.cancel();
    }

    timed_element<Element> element_;
    bool expired_ = false;
};

} // namespace detail

/// Limits an operation or a chain: `co_await timeout(sock.recv(buf), 3s)`. When the limit expires
/// first, the operation is cancelled and returns -ETIMEDOUT; an operation that completes while it
/// is being cancelled returns its real result. Either way the kernel no longer uses its buffers. A
/// stop request that comes first returns -ECANCELED. The limit counts from the start of the
/// operation; for a limited operation inside a chain, from when the kernel starts it. A chain that
/// ends because such a limit has expired returns -ETIMEDOUT.
template <ring_operation Op, class Rep, class Period>
auto timeout(Op&& op, std::chrono::duration<Rep, Period> limit) noexcept {
    using element = typename std::remove_cvref_t<Op>::element_type;
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "an operation is awaited once: limit a temporary, or std::move() the operation");
    static_assert(!detail::is_timed<element>, "this operation is limited already");
    return io_awaitable<detail::timed_element<element>>(detail::timed_element<element>(
        std::move(op).take_element(), detail::saturated_ns(limit), sleep_awaitable::from::now));
}

/// Limits an operation by a time point, see timeout(op, d). For a clock other than steady_clock the
/// span is computed here, when the limit is put on: a clock that is set meanwhile does not move it.
template <ring_operation Op, class Clock, class Duration>
auto timeout_at(Op&& op, std::chrono::time_point<Clock, Duration> deadline) noexcept {
    using element = typename std::remove_cvref_t<Op>::element_type;
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "an operation is awaited once: limit a temporary, or std::move() the operation");
    static_assert(!detail::is_timed<element>, "this operation is limited already");
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return io_awaitable<detail::timed_element<element>>(detail::timed_element<element>(
            std::move(op).take_element(), detail::saturated_ns(deadline.time_since_epoch()),
            sleep_awaitable::from::epoch));
    } else {
        return timeout(std::forward<Op>(op), detail::span_until(deadline));
    }
}

/// Only for the sentences that the compiler says.
template <detail::element E, class Rep, class Period>
void timeout(const eager_operation<E>&, std::chrono::duration<Rep, Period>) {
    static_assert(detail::always_false<E>,
                  "this operation is under way: limit it before it starts, eager(timeout(op, d))");
}
template <detail::element E, class Clock, class Duration>
void timeout_at(const eager_operation<E>&, std::chrono::time_point<Clock, Duration>) {
    static_assert(detail::always_false<E>,
                  "this operation is under way: limit it before it starts, "
                  "eager(timeout_at(op, time))");
}

} // namespace coil
