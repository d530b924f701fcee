#include <coil/core/promise.hpp>
#include <coil/exec/asyncify.hpp>

namespace coil::detail {

/// Through the inbox, even its own: the loop processes it after the ready coroutines have run.
void requeue_op::pass(std::coroutine_handle<> waiter, promise_base* root) noexcept {
    refuse_resumed_each_round(waiter);
    waiter_ = waiter;
    root_ = root;
    set_owned(root == nullptr);
    home_ = home_executor::current();
    if (home_) {
        place_ = place::executor;
        home_.submit(*this);
        return;
    }
    loop_ = &required_loop();
    deliver = [](queue_node& node, event_loop& loop) noexcept {
        auto& self = static_cast<requeue_op&>(node);
        self.place_ = place::ready_queue;
        loop.make_ready(node, self.waiter_);
    };
    place_ = place::inbox;
    loop_->post(*this);
}

void requeue_op::go_on(work& w, fate what) noexcept {
    auto& self = static_cast<requeue_op&>(w);
    const home_executor home = self.home_;
    if (promise_base* const bound = home.place().bound; bound != nullptr && what == fate::dropped) {
        self.place_ = place::nowhere; // for its destructor
        bound->owner().abandoned(*bound);
        return;
    }
    self.dropped_ = what == fate::dropped;
    if (current_loop != nullptr &&
        (self.dropped_ || !home_executor::current())) { // it is this context's from now on
        self.loop_ = current_loop;
        self.place_ = place::ready_queue;
        settle_in(*current_loop, self.root_, self, self.waiter_);
        return;
    }
    home.resume(self.waiter_, what);
}

void requeue_op::take_out() noexcept {
    if (place_ == place::executor) {
        home_.take_out(*this);
        return;
    }
    if (!loop_->on_owner_thread()) {
        end_with_misuse("a coroutine that waits for a later turn was destroyed on a thread other "
                        "than its context's.");
    }
    if (place_ == place::inbox) {
        loop_->deliver_inbox();
    }
    loop_->withdraw(*this, waiter_);
}

} // namespace coil::detail
