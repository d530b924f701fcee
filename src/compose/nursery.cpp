#include <coil/compose/detail/nursery.hpp>
#include <coil/context/sleep.hpp>

#include <system_error>
#include <utility>

namespace coil::detail {

std::exception_ptr cancelled_child() noexcept {
    return std::make_exception_ptr(
        std::system_error(std::make_error_code(std::errc::operation_canceled),
                          "coil: the child was destroyed with its supervisor, or after its grace"));
}

void throw_cancelled_wait() {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            "coil: the task that awaits a child was asked to stop");
}

void check_child_wait(child_state_base& child) noexcept {
    if (child.owner() != nullptr) {
        check_same_loop(child.owner()->loop());
    }
    if (child.waiter() != nullptr) [[unlikely]] {
        end_with_misuse("two coroutines await one child_handle");
    }
}

promise_base* child_state_base::awaiting_root() const noexcept {
    return nursery_ == nullptr ? nullptr : nursery_->awaiting_root();
}

void child_state_base::end(std::exception_ptr error) noexcept {
    nursery& owner = *nursery_;
    check_same_loop(owner.loop_);
    nursery_ = nullptr;
    outside_.reset();
    unlink();
    if (waiter_ != nullptr) {
        std::exchange(waiter_, nullptr)->resume();
    }
    owner.ended(*this, std::move(error));
    release();
}

promise_base* nursery::awaiting_root() const noexcept {
    return loop_ != nullptr && loop_->on_owner_thread() && joiner_ != nullptr ? joiner_->root()
                                                                              : nullptr;
}

void nursery::settle_on(event_loop& loop) noexcept {
    if (loop_ == &loop) {
        return; // children that have moved elsewhere read it
    }
    if (size() > 0) {
        end_with_misuse("a supervisor is used on another context than the one on which its "
                        "children run");
    }
    loop_ = &loop;
}

void nursery::add(child_state_base& child) noexcept {
    settle_on(required_loop());
    child.nursery_ = this;
    child.outside_.emplace(stop_.get_token(), child.stop_);
    if (running_ < limit_) {
        start(child);
    } else {
        waiting_.push(child);
        ++queued_;
    }
}

void nursery::start(child_state_base& child) noexcept {
    child.queued_ = false;
    child.push_to(children_);
    ++running_;
    const auto [root, coroutine] = child.begin();
    loop_->make_ready(*root, coroutine);
    if (child.waiter_ != nullptr) {
        std::exchange(child.waiter_, nullptr)->resume();
    }
}

void nursery::withdraw(child_state_base& child) noexcept {
    waiting_.remove(child);
    --queued_;
    child.outside_.reset();
    child.nursery_ = nullptr;
    child.destroy_coroutine(*loop_);
    child.release();
}

void nursery::ended(const child_state_base& child, std::exception_ptr error) noexcept {
    --running_;
    if (error) {
        failed(child, std::move(error)); // may add other children
    }
    while (running_ < limit_ && !waiting_.empty()) {
        --queued_;
        start(static_cast<child_state_base&>(waiting_.pop()));
    }
    if (size() == 0 && joiner_ != nullptr) {
        std::exchange(joiner_, nullptr)->resume();
    }
}

void nursery::destroy_children() noexcept {
    if (size() == 0) {
        return;
    }
    check_same_loop(loop_);
    while (size() > 0) { // a destructor may add another child
        const bool is_running = children_ != nullptr;
        child_state_base& child =
            is_running ? *children_ : static_cast<child_state_base&>(waiting_.pop());
        if (is_running) {
            child.unlink();
        }
        --(is_running ? running_ : queued_);
        child.outside_.reset();
        child.destroy_coroutine(*loop_);
        child.nursery_ = nullptr;
        if (child.waiter_ != nullptr) {
            std::exchange(child.waiter_, nullptr)->resume();
        }
        child.release();
    }
}

void nursery::leave_joiner() noexcept {
    if (joiner_ != nullptr) {
        std::exchange(joiner_, nullptr)->left_alone();
    }
}

nursery::joiner::~joiner() {
    if (pending()) {
        if (nursery_ != nullptr) {
            nursery_->joiner_ = nullptr;
        }
        stop_observing();
    }
    if (armed()) {
        loop().disarm(*this);
    }
}

bool nursery::joiner::await_ready() const noexcept {
    if (nursery_->joiner_ != nullptr) {
        end_with_misuse("two coroutines join one supervisor");
    }
    return nursery_->size() == 0;
}

void nursery::joiner::begin_waiting(std::coroutine_handle<> waiter,
                                    inplace_stop_token token) noexcept {
    event_loop& here = required_loop();
    nursery_->settle_on(here);
    nursery_->joiner_ = this;
    begin(here, waiter);
    if (limit_ns_ != no_limit) {
        if (!here.arm(*this, deadline_after(here.now_ns(), limit_ns_))) {
            expire(*this); // no memory for the timer: no grace period
            return;
        }
    }
    observe<joiner>(token);
}

/// The awaiting task is asked to stop: forwards that to the children; the join continues.
void nursery::joiner::cancel() noexcept {
    if (nursery_ != nullptr) {
        nursery_->cancel();
    }
}

void nursery::joiner::expire(timer_node& node) noexcept {
    auto& self = static_cast<joiner&>(node);
    if (self.pending()) {
        self.outcome_ = outcome::expired;
        self.nursery_->joiner_ = nullptr;
        self.finish();
    }
}

void nursery::joiner::left_alone() noexcept {
    nursery_ = nullptr;
    outcome_ = outcome::gone;
    resume();
}

nursery::joiner::outcome nursery::joiner::await_resume() noexcept {
    if (armed()) {
        loop().disarm(*this);
    }
    resumed();
    return outcome_;
}

} // namespace coil::detail
