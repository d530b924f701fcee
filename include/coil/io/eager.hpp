#pragma once

#include <coil/context/operation.hpp>

#include <cassert>
#include <cerrno>
#include <coroutine>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coil {

/// An operation that is under way, see eager(). It lives where it was made: it cannot be moved,
/// because the kernel knows it by its address. (To keep many, make them in a std::list or
/// std::deque with emplace_back, or spawn() tasks.)
///
/// Threading: it is made, awaited and destroyed on one context's thread.
/// Cancellation: when the awaiting task is asked to stop the operation is cancelled; before it is
/// awaited nobody's stop token concerns it. cancel() asks for it at any time. Destroying one that
/// is under way cancels it and returns when the kernel has let go of its buffers; what it made (a
/// descriptor) is closed.
template <detail::element Element>
class [[nodiscard("dropping an eager operation cancels it")]] eager_operation
    : detail::io_awaiter<Element> {
    using base = detail::io_awaiter<Element>;

public:
    explicit eager_operation(Element&& e) noexcept : base(std::move(e)) {
        this->launch(detail::required_loop(), {}, {});
    }

    class awaiter {
    public:
        explicit awaiter(eager_operation& op) noexcept : op_(&op) {}
        awaiter(const awaiter&) = delete;
        awaiter& operator=(const awaiter&) = delete;
        ~awaiter() {
            if (op_ != nullptr && op_->under_way() && op_->node().coroutine) [[unlikely]] {
                op_->leave();
            }
        }

        [[nodiscard]] bool await_ready() const noexcept { return op_->is_complete(); }
        template <class P>
        void await_suspend(std::coroutine_handle<P> waiter) noexcept {
            assert(!op_->node().coroutine && "coil: two coroutines await one eager operation");
            op_->template join<detail::io_wait>(waiter, detail::stop_token_of(waiter));
        }
        auto await_resume() { return std::exchange(op_, nullptr)->await_resume(); }

    private:
        eager_operation* op_;
    };

    /// The result, once. Suspends only when it is not there yet.
    [[nodiscard]] awaiter operator co_await() noexcept {
        assert(this->under_way() && "coil: this eager operation was awaited before");
        return awaiter(*this);
    }

    /// Whether the result is there.
    [[nodiscard]] bool is_complete() const noexcept { return !this->pending(); }

    /// Asks the kernel to give up. The operation then ends with -ECANCELED, or with its real result
    /// if that came first: await it to learn which. Nothing happens when it is complete.
    void cancel() noexcept { detail::io_wait::cancel(); }

    /// For io::poll_update and io::poll_remove: what the kernel knows it by.
    [[nodiscard]] std::uint64_t key() const noexcept { return this->first_key(); }
    /// For io::cancel.
    [[nodiscard]] detail::io_wait& wait() noexcept { return *this; }
};

/// Starts an operation now instead of when it is awaited; it runs while the coroutine goes on.
///
///     auto pending = eager(io::read(fd, buf, 0));
///     prepare_something_else();
///     int n = co_await pending;
///
/// Works for everything that `&&` and timeout() make of operations, too. Only on a context. What
/// the operation refers to (buffers, paths) must live until it is awaited or destroyed.
template <ring_operation Op>
[[nodiscard("dropping an eager operation cancels it")]] auto eager(Op&& op) noexcept {
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "an operation is started once: give eager() a temporary, or std::move() it");
    using element = typename std::remove_cvref_t<Op>::element_type;
    return eager_operation<element>(std::move(op).take_element());
}

} // namespace coil
