#pragma once

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/detail/promise.hpp>

#include <concepts>
#include <coroutine>

namespace coil::detail {

[[noreturn]] void refuse_to_move();

/// The awaiter of resume_on(). States: fresh → (posted → queued on the target) → resumed. The node
/// is in one queue at a time: the target's inbox, then its ready queue.
///
/// The node that moves a root is the one in its promise, which is in a cache line that resuming
/// needs anyway. Other coroutines move by the node in the awaiter.
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

} // namespace coil::detail
