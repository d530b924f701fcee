#include <coil/compose/scope.hpp>

#include <cstdint>
#include <system_error>
#include <utility>

namespace coil {

namespace {

std::coroutine_handle<detail::task_promise<void>>
coroutine_of(detail::promise_base& root) noexcept {
    return std::coroutine_handle<detail::task_promise<void>>::from_promise(
        static_cast<detail::task_promise<void>&>(root));
}

} // namespace

scope::~scope() {
    outside_.reset();
    if (running_ > 0 || joiner_ != nullptr) {
        detail::check_same_loop(loop_);
        if (joiner_ != nullptr) {
            joiner_->left_alone(std::exchange(error_, nullptr));
        }
        while (!children_.empty()) { // a destructor may spawn another child
            detail::promise_base& root = *children_.first();
            detail::root_chain::remove(root);
            destroy(root);
        }
    }
    if (error_) {
        detail::report_aside(std::move(error_));
    }
}

/// The child is in no chain any more.
void scope::destroy(detail::promise_base& root) noexcept {
    detail::check_same_loop(loop_);
    loop_->withdraw(root, coroutine_of(root)); // if it has not started
    detail::destroy_tree(coroutine_of(root));
}

void scope::settle_on(detail::event_loop& loop) noexcept {
    if (loop_ == &loop) {
        return; // children that have moved elsewhere read it
    }
    if (running_ > 0) {
        detail::end_with_misuse("a scope is used on another context than the one on which its "
                                "children run");
    }
    loop_ = &loop;
}

void scope::check_unjoined() const noexcept {
    if (joiner_ != nullptr) {
        detail::end_with_misuse("two coroutines join one scope");
    }
}

void scope::start(task<> work) {
    settle_on(detail::required_loop());
    if (joiner_ != nullptr) {
        joiner_->unwake();
    }
    const auto coroutine = work.release();
    coroutine.promise().become_root(*this);
    children_.insert(coroutine.promise());
    ++running_;
    loop_->make_ready(coroutine.promise(), coroutine);
}

void scope::finished(detail::promise_base& root) noexcept {
    detail::check_same_loop(loop_);
    detail::root_chain::remove(root);
    std::exception_ptr error = coroutine_of(root).promise().outcome.error();
    detail::destroy_task(coroutine_of(root));
    if (error) {
        fail(std::move(error));
    }
    if (--running_ == 0 && joiner_ != nullptr) {
        joiner_->wake();
    }
}

void scope::fail(std::exception_ptr error) noexcept {
    if (failed_ || (stop_.stop_requested() && detail::is_cancellation(error))) {
        detail::report_aside(std::move(error));
        return;
    }
    failed_ = true;
    error_ = std::move(error);
    cancel();
}

scope::joiner::~joiner() {
    detach();
    unwake();
    if (scope_ != nullptr && scope_->joiner_ == this) {
        scope_->joiner_ = nullptr;
    }
    if (error_) {
        detail::report_aside(std::move(error_));
    }
}

void scope::joiner::begin(std::coroutine_handle<> waiter, inplace_stop_token token) noexcept {
    scope_->settle_on(detail::required_loop());
    waiter_ = waiter;
    scope_->joiner_ = this;
    relay_stop(token, scope_->stop_);
}

/// Whether the scope is a local of the joining coroutine, and will thus be destroyed with its
/// frame: its address is between the start of the frame and this awaiter, which is also in the
/// frame. Returns false if that is not certain; the scope's destructor then destroys the children.
bool scope::joiner::is_inside(std::coroutine_handle<> waiter) const noexcept {
    const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    return address(waiter.address()) < address(scope_) && address(scope_) < address(this);
}

detail::promise_base* scope::joiner::next_below() noexcept {
    if (scope_ == nullptr || scope_->children_.empty()) {
        return nullptr;
    }
    detail::promise_base& newest = *scope_->children_.first();
    detail::root_chain::remove(newest);
    return &newest;
}

void scope::joiner::destroy_below(detail::promise_base& child) noexcept { scope_->destroy(child); }

void scope::joiner::wake() noexcept {
    woken_on_ = scope_->loop_;
    woken_on_->make_ready(static_cast<detail::ready_node&>(*this), waiter_);
}

/// Another child was spawned meanwhile, or the scope was destroyed.
void scope::joiner::unwake() noexcept {
    if (woken_on_ != nullptr) {
        std::exchange(woken_on_, nullptr)
            ->withdraw(static_cast<detail::ready_node&>(*this), waiter_);
    }
}

/// The scope is being destroyed. In a shutdown the joining frame is destroyed as well, before it
/// can resume.
void scope::joiner::left_alone(std::exception_ptr error) noexcept {
    detach();
    error_ = std::move(error);
    if (woken_on_ == nullptr) {
        if (!error_) {
            error_ = std::make_exception_ptr(
                std::system_error(std::make_error_code(std::errc::operation_canceled),
                                  "coil: a scope was destroyed while a coroutine joined it"));
        }
        wake();
    }
    scope_ = nullptr;
}

void scope::joiner::await_resume() {
    woken_on_ = nullptr;
    if (awaiting_ != nullptr) {
        awaiting_->awaits_nothing();
    }
    if (scope_ == nullptr) [[unlikely]] {
        if (error_) {
            std::rethrow_exception(std::exchange(error_, nullptr));
        }
        return;
    }
    detach();
    scope_->joiner_ = nullptr;
    if (scope_->error_) {
        std::rethrow_exception(std::exchange(scope_->error_, nullptr));
    }
}

} // namespace coil
