#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/context/io_context.hpp>
#include <coil/core/promise.hpp>

#include <concepts>
#include <coroutine>

namespace coil {

namespace detail {

/// Life: fresh → (posted → queued on the target) → resumed. The node is in one queue at a time: the
/// target's inbox, then its ready queue.
class [[nodiscard("did you forget to co_await?")]] move_awaiter : queue_node {
public:
    explicit move_awaiter(event_loop& target) noexcept : target_(target) {}
    move_awaiter(const move_awaiter&) = delete;
    move_awaiter& operator=(const move_awaiter&) = delete;
    ~move_awaiter() {
        if (queued_) [[unlikely]] {
            target_.withdraw(*this, waiter_); // destroyed on its way
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return target_.on_owner_thread(); }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        waiter_ = waiter;
        if constexpr (std::derived_from<P, promise_base>) {
            root_ = waiter.promise().root();
            if (root_ != nullptr) {
                root_list::remove(*root_); // from now on the target finds it at a shutdown
            }
        }
        deliver = [](queue_node& node, event_loop& loop) noexcept {
            auto& self = static_cast<move_awaiter&>(node);
            self.queued_ = true;
            loop.settle(self.root_, self, self.waiter_);
        };
        target_.post_coroutine(*this); // and it may be gone
    }

    void await_resume() noexcept { queued_ = false; }

private:
    event_loop& target_;
    promise_base* root_ = nullptr;
    std::coroutine_handle<> waiter_;
    bool queued_ = false;
};

} // namespace detail

/// Moves the calling task to another context: after `co_await resume_on(ctx)` it, and whoever
/// awaits it, runs on the thread of `ctx`, until it moves again. Does nothing on `ctx` itself.
///
///     co_await resume_on(other);      // compute there
///     const auto sum = add(numbers);
///     co_await resume_on(home);
///
/// Threading: everything before it happens before everything after it. What belongs to the context
/// that is left stays there and must not be awaited from elsewhere: eager operations, multishot
/// streams and direct descriptors. Plain descriptors and join handles move freely.
///
/// Cancellation: a stop request does not keep it from moving. A shutdown of `ctx` destroys a task
/// that is on its way to it; a context must outlive whatever moves to it.
inline detail::move_awaiter resume_on(io_context& context) noexcept {
    return detail::move_awaiter(context.loop());
}

} // namespace coil
