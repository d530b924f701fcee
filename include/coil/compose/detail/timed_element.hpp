#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/context/detail/buffer_check.hpp>
#include <coil/context/detail/timed_op.hpp>
#include <coil/context/operation.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/detail/debug_reports.hpp>
#include <coil/core/task.hpp>
#include <coil/io/eager.hpp>
#include <coil/uring/prep.hpp>

#include <coroutine>
#include <cstdint>
#include <utility>

#include <sys/socket.h>

namespace coil::detail {

/// An element with a time limit. A single element is limited by a timer of the context. Inside a
/// chain only the kernel knows when the element starts, so there it becomes a kernel_timed_element.
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

inline void link_to_next(sqe_slot& entry) noexcept {
    entry.request.flags |= uring::sqe_flag::io_link;
    const auto opcode = static_cast<uring::opcode>(entry.request.opcode);
    if (opcode == uring::opcode::send || opcode == uring::opcode::sendmsg ||
        opcode == uring::opcode::send_zc || opcode == uring::opcode::sendmsg_zc) {
        // Otherwise a short send would count as a success, and the rest of the data would be lost.
        entry.request.msg_flags |= MSG_WAITALL;
    }
}

/// An element inside a chain, followed by the IORING_OP_LINK_TIMEOUT that limits it.
template <element Element>
class kernel_timed_element : public Element {
    static_assert(Element::entries == 1);

public:
    static constexpr std::uint16_t entries = 2;
    static constexpr bool has_link_timeout = true;

    explicit kernel_timed_element(timed_element<Element>&& timed) noexcept
        : Element(std::move(static_cast<Element&>(timed))) {
        limit_.tv_sec = timed.ns() / 1'000'000'000;
        limit_.tv_nsec = timed.ns() % 1'000'000'000;
        absolute_ = timed.origin() == sleep_awaitable::from::epoch;
    }

    sqe_slot& arm() noexcept {
        sqe_slot& limited = Element::arm();
        link_to_next(limited);
        limit_entry_.set_call(
            uring::prep::link_timeout(&limit_, absolute_ ? uring::timeout_flag::abs : 0));
        limit_entry_.make_limit();
        limited.set_next(&limit_entry_);
        return limited;
    }

private:
    uring::timespec limit_{};
    sqe_slot limit_entry_;
    bool absolute_ = false;
};

template <element Element>
kernel_timed_element(timed_element<Element>&&) -> kernel_timed_element<Element>;

/// The awaiter of a limited operation, see timeout(op, d).
template <element Element>
class io_awaiter<timed_element<Element>> : protected timed_op {
public:
    explicit io_awaiter(timed_element<Element>&& e) noexcept
        : timed_op(&expire, e.ns(), e.origin()), element_(std::move(static_cast<Element&>(e))) {}
    io_awaiter(const io_awaiter&) = delete;
    io_awaiter& operator=(const io_awaiter&) = delete;
    ~io_awaiter() {
        if (!under_way()) [[likely]] {
            return;
        }
        if (armed()) { // an eager operation may outlive its context, which then disarms the timer
            loop().disarm(*this);
        }
        cancel_and_wait();
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
        COIL_ASSERT(!pending());
        resumed();
        poison_errno();
#if COIL_CHECKS_BUFFERS
        check_completed_buffers(*first());
#endif
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
        COIL_ASSERT(!pending());
        resumed();
        element_.drop();
    }

protected:
    void launch(event_loop& loop, std::coroutine_handle<> waiter,
                inplace_stop_token token) noexcept {
        sqe_slot& first = element_.arm();
#if COIL_CHECKS_BUFFERS
        check_submitted_buffers(first);
#endif
        start(loop, waiter, token, first, Element::entries, needs_every_result<Element>);
        if (pending()) {
            const std::int64_t deadline =
                origin() == sleep_awaitable::from::now ? deadline_after(loop.now_ns(), ns()) : ns();
            if (!loop.arm(*this, deadline)) {
                cancel(); // no memory for the timer: do not run the operation without its limit
            }
        }
    }

private:
    static void expire(timer_node& node) noexcept {
        auto& self = static_cast<io_awaiter&>(node);
        // If a stop was requested first, the operation ends because of the stop, not the limit.
        self.expired_ = self.pending() && !self.state().is_cancelling();
        self.cancel();
    }

    Element element_;
    bool expired_ = false;
};

} // namespace coil::detail
