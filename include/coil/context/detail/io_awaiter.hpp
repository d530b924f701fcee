#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/detail/buffer_check.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/io_element.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/core/detail/debug_reports.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/this_task.hpp>

#include <coroutine>
#include <utility>

namespace coil::detail {

// Every operation of a single entry starts here, inlined into its await.
inline bool io_op::start_at_once(event_loop& loop, std::coroutine_handle<> waiter,
                                 inplace_stop_token token, sqe_slot& entry) noexcept {
    COIL_ASSERT(entry.starts_alone());
    constexpr unsigned special = uring::sqe_flag::io_drain | uring::sqe_flag::io_hardlink;
    if ((entry.request.flags & special) != 0 || token.stop_requested()) [[unlikely]] {
        return false;
    }
    if (entry.has_files_table()) [[unlikely]] {
        entry.check_files_table(loop.direct_table());
    }
    if (!loop.submit_at_once(entry)) [[unlikely]] {
        return false;
    }
    begin(loop, waiter, wait_kind::operation);
    set_submission(entry, 1);
    state_.start_at_once(token.stop_possible());
#if COIL_ASSERTIONS
    loop.descriptors().begin(*this);
#endif
    if (token.stop_possible()) {
        observe<io_op>(token);
    }
    return true;
}

/// The awaiter of an io_awaitable: the element and what the loop needs to wait for it. A separate
/// type, so that the operands of `a && b` are plain data that the compiler can optimize away, and
/// only operations in flight take space in the coroutine's frame.
template <element Element>
class io_awaiter : protected io_op {
public:
    explicit io_awaiter(Element&& e) noexcept : element_(std::move(e)) {}
    io_awaiter(const io_awaiter&) = delete;
    io_awaiter& operator=(const io_awaiter&) = delete;
    ~io_awaiter() {
        if (!under_way()) [[likely]] {
            return;
        }
        cancel_and_wait();
        element_.drop();
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        event_loop& loop = required_loop();
        const inplace_stop_token token = stop_token_of(waiter);
        sqe_slot& first = element_.arm();
#if COIL_CHECKS_BUFFERS
        check_submitted_buffers(first);
#endif
        if constexpr (Element::entries == 1 && !requires { Element::may_wake_spuriously; }) {
            if (start_at_once(loop, waiter, token, first)) [[likely]] {
                return;
            }
        }
        start(loop, waiter, token, first, Element::entries, needs_every_result<Element>);
    }

    auto await_resume() noexcept {
        COIL_ASSERT(!pending());
        resumed();
        poison_errno();
#if COIL_CHECKS_BUFFERS
        check_completed_buffers(*first());
#endif
        if constexpr (has_link_timeout<Element>) {
            return timed_out_if(link_timeout_expired(), element_.result());
        } else {
            return element_.result();
        }
    }

    /// Called instead of await_resume() if the result is not needed.
    void discard() noexcept {
        COIL_ASSERT(!pending());
        resumed();
#if COIL_CHECKS_BUFFERS
        check_completed_buffers(*first());
#endif
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
    }

private:
    Element element_;
};

} // namespace coil::detail
