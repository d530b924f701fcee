#include <coil/context/join_handle.hpp>
#include <coil/core/detail/frame_tree.hpp>
#include <coil/exec/detail/async_state.hpp>

#include <stdexcept>
#include <system_error>

namespace coil::detail {

void throw_async_taken() {
    throw std::logic_error("coil: the result of this async_task was moved out already");
}

void async_state_base::wait_blocking() noexcept {
    if (has_result()) {
        return;
    }
    resumptions::run_waiting();
    std::unique_lock lock(mutex_);
    done_now_.wait(lock, [this] { return done(); });
}

void throw_async_left() {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            "coil: co_await of an async_task: the task that awaits it was asked to "
                            "stop");
}

/// A stop requested after this check finds the waiter in the list.
async_state_base::answer async_state_base::add(waiter& w,
                                               const inplace_stop_token& token) noexcept {
    const std::lock_guard lock(mutex_);
    if (done()) {
        return answer::done;
    }
    if (token.stop_requested()) {
        return answer::stopped;
    }
    w.push_to(waiters_);
    return answer::waits;
}

void async_state_base::leave(waiter& w) noexcept {
    if (remove(w)) {
        w.refused = true;
        w.op->complete();
    }
}

/// Called while the coroutine's context waits and therefore runs no coroutines. It may wait for the
/// end of one of these waiters: those that were asked to stop get no result, so that they can end.
void async_state_base::refuse_unwanted() noexcept {
    std::unique_lock lock(mutex_);
    waiter* refused = nullptr;
    for (waiter* one = waiters_; one != nullptr;) {
        waiter& w = *one;
        one = one->next;
        if (detail::is_unwanted(w.below)) {
            w.unlink();
            w.refused = true;
            w.next = refused;
            refused = &w;
        }
    }
    lock.unlock();
    tell(refused);
}

bool async_state_base::remove(waiter& w) noexcept {
    const std::lock_guard lock(mutex_);
    if (!w.is_linked()) {
        return false;
    }
    w.unlink();
    return true;
}

void async_state_base::add(std::unique_ptr<async_callback> callback) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (!done()) {
            *last_ = callback.get();
            last_ = &callback.release()->next;
            return;
        }
    }
    call(*callback);
}

void async_state_base::call(async_callback& callback) noexcept {
    try {
        callback.call(*this);
    } catch (...) {
        report_unhandled(std::current_exception());
    }
}

void async_state_base::finished(promise_base& root) noexcept {
    event_loop::task_ended(root);
    coroutine_.destroy();
    complete(&root); // used as an address only
}

void async_state_base::abandoned(promise_base& root) noexcept {
    destroy_frames_below(root);
    set_received(); // not reported: the caller shut the executor down itself
    fail(std::make_exception_ptr(
        std::system_error(std::make_error_code(std::errc::operation_canceled),
                          "coil: the async_task's executor was shut down")));
}

void async_state_base::fail(std::exception_ptr error) noexcept {
    {
        const destroying_frames here;
        coroutine_.destroy();
    }
    set_error(std::move(error));
    complete(nullptr);
}

/// Called when the coroutine was destroyed and the result is stored. `ended` is the address of its
/// promise if it has run to its end, otherwise null.
void async_state_base::complete(const promise_base* ended) noexcept {
    completer_.store(std::this_thread::get_id(), std::memory_order_release);
    std::unique_lock lock(mutex_);
    while (first_ != nullptr) {
        async_callback* callback = std::exchange(first_, nullptr);
        last_ = &first_;
        lock.unlock();
        while (callback != nullptr) {
            const std::unique_ptr<async_callback> one(callback);
            callback = one->next;
            call(*one);
        }
        lock.lock();
    }
    done_.store(true, std::memory_order_release);
    waiter* oldest = nullptr;
    while (waiter* const w = waiters_) {
        w->unlink(); // from now on remove() returns false, so w exists until it is notified
        w->next = oldest;
        oldest = w;
    }
    done_now_.notify_all();
    lock.unlock();
    const resumptions::ending scope(ended);
    tell(oldest);
    release();
}

void async_state_base::tell(waiter* oldest) noexcept {
    while (oldest != nullptr) {
        remote_op& op = *oldest->op;
        oldest = oldest->next;
        op.complete();
    }
}

void async_state_base::release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return;
    }
    if (error_ && !received_.load(std::memory_order_relaxed)) {
        report_unhandled(error_);
    }
    delete this;
}

} // namespace coil::detail
