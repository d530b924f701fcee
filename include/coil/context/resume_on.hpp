#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/context/io_context.hpp>
#include <coil/core/promise.hpp>

#include <concepts>
#include <coroutine>

namespace coil {

namespace detail {

[[noreturn]] void refuse_to_move();

/// States: fresh → (posted → queued on the target) → resumed. The node is in one queue at a time:
/// the target's inbox, then its ready queue.
///
/// A root moves by the node of its promise, which is in a cache line that resuming needs anyway;
/// other coroutines by the node of the awaiter.
class [[nodiscard("did you forget to co_await?")]] move_awaiter : queue_node {
public:
    explicit move_awaiter(event_loop& target) noexcept : target_(target) {}
    move_awaiter(const move_awaiter&) = delete;
    move_awaiter& operator=(const move_awaiter&) = delete;
    ~move_awaiter() {
        if (place_ == place::ready_queue) [[unlikely]] {
            target_.withdraw(*this, waiter_); // destroyed while it moves
        } else if (place_ == place::inbox) [[unlikely]] {
            end_with_misuse("a coroutine is destroyed while it moves to another context");
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return target_.on_owner_thread(); }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) {
        if constexpr (std::derived_from<P, promise_base>) {
            P& promise = waiter.promise();
            root_ = promise.root();
            if (root_ != nullptr && root_->owner().bound) [[unlikely]] {
                refuse_to_move();
            }
            if (promise.is_root()) [[likely]] {
                post_task(promise);
                return;
            }
            if (root_ != nullptr) {
                event_loop::begin_move(*root_); // from now on the target finds it at a shutdown
            }
        }
        waiter_ = waiter;
        deliver = [](queue_node& node, event_loop& loop) noexcept {
            auto& self = static_cast<move_awaiter&>(node);
            self.place_ = place::ready_queue;
            loop.adopt_remote(self.root_, self, self.waiter_);
        };
        place_ = place::inbox;
        target_.post(*this); // may destroy this
    }

    void await_resume() noexcept { place_ = place::nowhere; }

private:
    /// The queue of the target that holds this node. The node of a root is not tracked.
    enum class place : unsigned char { nowhere, inbox, ready_queue };

    /// Only a shutdown destroys a root, and it first removes the node from the queue.
    template <class P>
    void post_task(P& promise) noexcept {
        event_loop::begin_move(promise);
        promise.deliver = [](queue_node& node, event_loop& loop) noexcept {
            P& root = static_cast<P&>(node);
            loop.adopt_remote(&root, root, std::coroutine_handle<P>::from_promise(root));
        };
        target_.post(promise); // may destroy this
    }

    event_loop& target_;
    promise_base* root_ = nullptr;
    std::coroutine_handle<> waiter_; // unless it is a root
    place place_ = place::nowhere;
};

} // namespace detail

/// Moves the calling task to another context: after `co_await resume_on(ctx)` the task, and its
/// awaiters, run on the thread of `ctx` until it moves again. Does nothing on `ctx` itself.
///
///     co_await resume_on(other);      // compute there
///     const auto sum = add(numbers);
///     co_await resume_on(home);
///
/// Threading: everything before it happens before everything after it. Objects that belong to the
/// context that is left must not be awaited elsewhere: eager operations, multishot streams and
/// direct descriptors. Plain descriptors and join handles move freely.
///
/// While it is elsewhere the task does not count as work of the context that it left, whose run()
/// may return; coil::run() and block_on() wait for it everywhere. Coroutines of other types that
/// await tasks must not be destroyed while one of these moves, nor be awaited by a task of the
/// context that is left, because the root of their tree is unknown.
///
/// Cancellation: a stop request does not prevent the move. A shutdown of `ctx` destroys a task that
/// is on its way to it. A context must outlive the tasks that move to it.
///
/// A child of when_all, when_any, scope or timeout(task, d) cannot leave its parent's context,
/// because it may refer to the parent's frame: moving throws std::logic_error. Spawn a task on the
/// other context instead, ctx.spawn(work), and make its join_handle the child.
inline detail::move_awaiter resume_on(io_context& context) noexcept {
    return detail::move_awaiter(context.loop());
}

} // namespace coil
