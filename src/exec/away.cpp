#include "../context/futex.hpp"

#include <coil/core/backoff.hpp>
#include <coil/core/transfer.hpp>
#include <coil/exec/blocking_pool.hpp>
#include <coil/exec/detail/away.hpp>

#include <climits>
#include <exception>
#include <string>
#include <system_error>

namespace coil::detail {

void offload_op::leave(std::coroutine_handle<> waiter, promise_base* root) noexcept {
    refuse_resumed_each_round(waiter);
    root_ = root;
    continuation_.set_owned(movable_above(root) == nullptr);
    away_ = true;
    home_ = home_executor::current();
    if (home_ || current_loop == nullptr) {
        node().coroutine = waiter;
    } else {
        begin(*current_loop, waiter);
    }
}

void offload_op::come_back() noexcept {
    const void* const word = errand_.address();
    switch (errand_.finish()) {
    case handoff::sending:
        return; // the sender has not suspended
    case handoff::abandoned:
        futex_wake(word, INT_MAX);
        return;
    default:
        break;
    }
    if (home_) {
        home_.submit(continuation_);
    } else if (!under_way()) {
        resume(node().coroutine);
    } else if (event_loop& home = loop(); home.on_owner_thread()) {
        finish();
    } else {
        continuation_.deliver = [](queue_node& posted, event_loop&) noexcept {
            static_cast<continuation&>(posted).self->finish();
        };
        home.post(continuation_);
    }
}

/// Also for an executor that was shut down: the thread that reports it resumes the coroutine,
/// unless that is bound to the executor. A context resumes it through its queue, even if an
/// executor runs work inline.
void offload_op::continuation::go_on(work& w, fate what) noexcept {
    offload_op& self = *static_cast<continuation&>(w).self;
    if (promise_base* const bound = self.home_.place().bound;
        bound != nullptr && what == fate::dropped) {
        self.is_over(); // for its destructor
        bound->owner().abandoned(*bound);
        return;
    }
    const std::coroutine_handle<> coroutine = self.node().coroutine;
    if (current_loop != nullptr && (what == fate::dropped || !home_executor::current())) {
        self.begin(*current_loop, coroutine);
        self.finish_unobserved();
        settle_in(*current_loop, movable_above(self.root_), self.node(), coroutine);
        return;
    }
    const home_executor home = self.home_;
    home.resume(coroutine, what);
}

void offload_op::stop_before_end() noexcept {
    if (!loop().on_owner_thread()) {
        end_with_misuse("a coroutine that waits for another thread was destroyed on a "
                        "thread other than its context's.");
    }
    if (pending()) {
        stop_observing();
    }
}

void offload_op::wait_until_back() noexcept {
    if (errand_.abandon()) {
        while (!errand_.is_back()) {
            futex_wait(errand_.address(), handoff::abandoned);
        }
    } else if (home_) {
        home_.take_out(continuation_);
    } else if (!under_way()) {
        end_with_misuse("a coroutine is destroyed while another thread resumes it.");
    } else {
        for (backoff wait; pending(); wait.once_more()) {
            // the notification is in the inbox or will be in a few instructions
            loop().deliver_inbox();
        }
    }
}

void throw_not_called(const char* name, not_called why, int error) {
    std::string what = std::string("coil: ") + name;
    if (why == not_called::no_thread) {
        throw std::system_error(error, std::generic_category(),
                                what + ": the pool has no thread and cannot create one");
    }
    what += why == not_called::stopped ? ": the task was asked to stop"
                                       : ": the executor was shut down";
    throw std::system_error(std::make_error_code(std::errc::operation_canceled), what);
}

void report_no_thread(int error) noexcept {
    try {
        throw_not_called("blocking_pool::execute", not_called::no_thread, error);
    } catch (...) {
        report_unhandled(std::current_exception());
    }
}

} // namespace coil::detail
