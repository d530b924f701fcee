#include <coil/compose/detail/nursery.hpp>
#include <coil/core/backtrace.hpp>
#include <coil/core/detail/debug_reports.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace coil::detail {

std::exception_ptr cancelled_child() noexcept {
    return std::make_exception_ptr(
        std::system_error(std::make_error_code(std::errc::operation_canceled),
                          "coil: the child was destroyed with its scope or supervisor"));
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
    owner.take_out(*this);
    if (waiter_ != nullptr) {
        std::exchange(waiter_, nullptr)->resume();
    }
    owner.ended(*this, std::move(error));
    release();
}

promise_base* child_state_base::owning_root() const noexcept {
    return nursery_ == nullptr ? nullptr : nursery_->owning_root();
}

promise_base* child_state_base::awaiting_task() const noexcept {
    return nursery_ == nullptr ? nullptr : nursery_->awaiting_task();
}

promise_base* nursery::awaiting_task() const noexcept {
    return joiner_ != nullptr ? joiner_->awaiting_ : nullptr;
}

void nursery::take_out(child_state_base& child) noexcept {
    if (oldest_ == &child) {
        do {
            oldest_ = oldest_->previous(children_);
        } while (oldest_ != nullptr && oldest_->is_cursor());
    }
    child.unlink();
}

promise_base* nursery::awaiting_root() const noexcept {
    return loop_ != nullptr && loop_->on_owner_thread() && joiner_ != nullptr &&
                   joiner_->awaiting_ != nullptr
               ? joiner_->awaiting_->root()
               : nullptr;
}

promise_base* nursery::owning_root() const noexcept {
    promise_base* const root = awaiting_root();
    return root != nullptr && joiner_->awaiting_->nested_below() == joiner_ ? root : nullptr;
}

void nursery::check_unjoined() const noexcept {
    if (joiner_ != nullptr) {
        end_with_misuse("two coroutines join one scope or supervisor");
    }
}

void nursery::bind_to(event_loop& loop) noexcept {
    if (loop_ == &loop) {
        return; // no write: children on other threads may be reading it
    }
    if (size() > 0) {
        end_with_misuse(
            "a scope or supervisor is used on another context than the one on which its "
            "children run");
    }
    loop_ = &loop;
}

void nursery::add(child_state_base& child) noexcept {
    bind_to(required_loop());
    if (joiner_ != nullptr && joiner_->outcome_ == joiner::outcome::empty) {
        joiner_->unwake();
    }
    if (!is_linked()) {
        push_to(loop_->listed_nurseries());
    }
    child.nursery_ = this;
    child.outside_.emplace(stop_.get_token(), child.stop_);
    if (running_ < limit_) {
        start(child);
    } else {
        waiting_.push(child);
        ++queued_;
        ++held_back_;
    }
}

void nursery::start(child_state_base& child) noexcept {
    child.queued_ = false;
    child.push_to(children_);
    oldest_ = oldest_ == nullptr ? &child : oldest_;
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
    leave_list_if_empty();
}

void nursery::ended(child_state_base& child, std::exception_ptr error) noexcept {
    --running_;
    settled(child, std::move(error)); // may add other children
    while (running_ < limit_ && !waiting_.empty()) {
        --queued_;
        start(static_cast<child_state_base&>(waiting_.pop()));
    }
    leave_list_if_empty();
    if (size() == 0 && joiner_ != nullptr) {
        joiner_->wake(joiner::outcome::empty);
    }
}

void nursery::wake_joiner() noexcept {
    if (joiner_ != nullptr) {
        joiner_->wake(joiner::outcome::result);
    }
}

void nursery::destroy(child_state_base& child) noexcept {
    check_same_loop(loop_);
    child.outside_.reset();
    child.destroy_coroutine(*loop_);
    child.nursery_ = nullptr;
    if (child.waiter_ != nullptr) {
        std::exchange(child.waiter_, nullptr)->resume();
    }
    child.release();
}

void nursery::check_not_destroying() const noexcept {
    for (const auto* one = loop_->waiting_destructors().nurseries(); one != nullptr;
         one = one->earlier()) {
        if (&one->which() == this) {
            end_with_misuse("a scope or supervisor is destroyed again while it destroys its "
                            "children.");
        }
    }
}

void nursery::destroy_children() noexcept {
    std::optional<destructor_waits::nursery_scope> noted;
    std::optional<destructor_waits::scope> cause;
    if (running_ > 0 && loop_->on_owner_thread() && loop_->tasks().away() != nullptr) {
        check_not_destroying();
        noted.emplace(loop_->waiting_destructors(), *this);
        if (running_ > 1) {
            cause.emplace(loop_->waiting_destructors());
            loop_->destroy_away_below(*this, running_);
        }
    }
    while (size() > 0) { // a destructor may add another
        if (first_child() != nullptr) {
            child_state_base& child = *children_;
            take_out(child);
            --running_;
            destroy(child);
        } else {
            --queued_;
            destroy(static_cast<child_state_base&>(waiting_.pop()));
        }
    }
    leave_list_if_empty();
}

void nursery::leave_joiner(std::exception_ptr error, const task_label& child) noexcept {
    if (joiner_ != nullptr) {
        check_same_loop(loop_);
        joiner_->left_alone(std::move(error));
    } else if (error) {
        report_aside(std::move(error), child);
    }
}

void nursery::report_unjoined(const char* how, const char* remedy) const noexcept try {
    if (stop_.stop_requested() || is_cleaning_up()) {
        return;
    }
    std::string first;
    const child_state_base* newest = children_;
    while (newest != nullptr && newest->is_cursor()) {
        newest = newest->next_sibling();
    }
    if (newest != nullptr) {
        first = ", the newest of them ";
        if (!newest->name().empty()) {
            first += '\'' + std::string(newest->name()) + "' in ";
        }
        append_to(first, find_symbol(resume_function(frame_of(newest->promise()))));
    }
    std::fprintf(stderr,
                 "coil: %s while %zu of its children had not ended%s. They are destroyed. %s, or "
                 "cancel() it first.\n",
                 how, size(), first.c_str(), remedy);
} catch (...) { // NOLINT(*-empty-catch): no memory for the message
}

nursery::joiner::~joiner() {
    detach();
    unwake();
    if (nursery_ != nullptr && nursery_->joiner_ == this) {
        nursery_->joiner_ = nullptr;
    }
    if (error_) {
        report_aside(std::move(error_));
    }
}

void nursery::joiner::begin(std::coroutine_handle<> waiter, inplace_stop_token token) noexcept {
    nursery_->bind_to(required_loop());
    waiter_ = waiter;
    nursery_->joiner_ = this;
    relay_stop(token, nursery_->stop_);
}

bool nursery::is_between(std::coroutine_handle<> coroutine, const void* awaiter) const noexcept {
    const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    return address(coroutine.address()) < address(this) && address(this) < address(awaiter);
}

promise_base* nursery::joiner::next_below() noexcept {
    if (nursery_ == nullptr || nursery_->first_child() == nullptr) {
        return nullptr;
    }
    below_ = nursery_->children_;
    nursery_->take_out(*below_);
    --nursery_->running_;
    return &below_->promise();
}

void nursery::joiner::destroy_below(promise_base& /*child*/) noexcept {
    nursery_->destroy(*below_);
    nursery_->leave_list_if_empty();
}

void nursery::joiner::wake(outcome why) noexcept {
    if (woken_on_ == nullptr) {
        outcome_ = why;
        woken_on_ = nursery_->loop_;
        woken_on_->make_ready(static_cast<ready_node&>(*this), waiter_);
    }
}

/// Withdraws a wake-up: a child was added before the joining coroutine resumed.
void nursery::joiner::unwake() noexcept {
    if (woken_on_ != nullptr) {
        std::exchange(woken_on_, nullptr)->withdraw(static_cast<ready_node&>(*this), waiter_);
    }
}

void nursery::joiner::give_up_waiting() noexcept {
    if (nursery_ != nullptr) {
        wake(outcome::expired);
    }
}

/// Called when the nursery is being destroyed. In a shutdown the joining frame is destroyed as
/// well, before it can resume.
void nursery::joiner::left_alone(std::exception_ptr error) noexcept {
    detach();
    error_ = std::move(error);
    if (error_ || outcome_ == outcome::result) {
        outcome_ = outcome::gone; // even if it was woken for another reason
    }
    wake(outcome::gone);
    nursery_->joiner_ = nullptr;
    nursery_ = nullptr;
}

nursery::joiner::outcome nursery::joiner::finish() noexcept {
    woken_on_ = nullptr;
    if (awaiting_ != nullptr) {
        awaiting_->awaits_nothing();
    }
    if (nursery_ != nullptr) {
        detach();
        if (nursery_->joiner_ == this) {
            nursery_->joiner_ = nullptr;
        }
    }
    return outcome_;
}

} // namespace coil::detail
