#include "../context/failure_report.hpp"
#include "../context/futex.hpp"

#include <coil/context/detail/executor_state.hpp>
#include <coil/exec/detail/remote_op.hpp>

#include <chrono>
#include <climits>
#include <coroutine>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>
#include <type_traits>

namespace coil::detail {

/// The thread's variables of this room that belong to the calls on the current stack.
struct executor_variables {
    executor_place place = current_place;
    const executor_scope* scope = executor_scope::innermost;
    submit_scope* submitting = submit_scope::innermost;
    fifo* waiting = resumptions::waiting_here;
    const promise_base* running = resumptions::running;
    std::coroutine_handle<> each_round = resumed_each_round;
    bool ends = resumptions::innermost_ends;

    static void exchange(executor_state& with) noexcept {
        static_assert(std::is_trivially_copyable_v<executor_variables> &&
                      sizeof(executor_variables) == sizeof with.bytes);
        const executor_variables before;
        executor_variables after;
        std::memcpy(&after, with.bytes, sizeof after);
        std::memcpy(with.bytes, &before, sizeof before);
        current_place = after.place;
        executor_scope::innermost = after.scope;
        submit_scope::innermost = after.submitting;
        resumptions::waiting_here = after.waiting;
        resumptions::running = after.running;
        resumed_each_round = after.each_round;
        resumptions::innermost_ends = after.ends;
    }
};

namespace {
[[maybe_unused]] const bool is_hooked = [] {
    root_on_executor = &resumptions::running_root;
    exchange_executor_state = &executor_variables::exchange;
    return true;
}();
} // namespace

void resumptions::run(remote_op& op, const executor_place& place) noexcept {
    op.target_.place = place; // no other code reads the target any more
    if (innermost_ends) {
        waiting_here->push(op);
        return;
    }
    fifo waiting;
    waiting.push(op);
    fifo* const outer = std::exchange(waiting_here, &waiting);
    const promise_base* const interrupted = running;
    run_all(waiting);
    running = interrupted;
    waiting_here = outer;
}

void resumptions::run_waiting() noexcept {
    if (waiting_here != nullptr) {
        const promise_base* const interrupted = running;
        run_all(*waiting_here);
        running = interrupted;
    }
}

void resumptions::run_all(fifo& waiting) noexcept {
    const bool inside_of_end = std::exchange(innermost_ends, false);
    while (!waiting.empty()) {
        auto& next = static_cast<remote_op&>(waiting.pop());
        const running_at scope(next.target_.place);
        running = next.root_;
        resume(next.waiter_); // may destroy it
    }
    innermost_ends = inside_of_end;
}

void remote_op::throw_executor_lost(const char* name) {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            std::string("coil: ") + name +
                                ": the executor that was to resume the coroutine was shut down");
}

void remote_op::complete() noexcept {
    const void* const word = handoff_.address();
    switch (handoff_.complete()) {
    case handoff::submitted:
        return; // the awaiting side has not suspended
    case handoff::abandoned:
        futex_wake(word, INT_MAX);
        return;
    default:
        return_to_target();
    }
}

void remote_op::return_to_target() noexcept {
    if (event_loop* const loop = target_.loop) {
        if (loop->on_owner_thread()) {
            settle(*loop);
            return;
        }
        settle_on_delivery();
        loop->post(*this);
    } else if (target_.place.executor) {
        submit_or_drop();
    } else {
        resume_anywhere();
    }
}

void remote_op::submit_or_drop() noexcept {
    try {
        target_.place.executor.submit(*this);
    } catch (...) { // it was not submitted
        drop();
    }
}

void remote_op::arrive(work& w, fate what) noexcept {
    auto& self = static_cast<remote_op&>(w);
    COIL_ASSERT(self.handoff_.is(handoff::arriving));
    if (what == fate::run) {
        if (!submit_scope::notice(self)) {
            self.resume_here(self.target_.place, self.target_.scoped);
        }
    } else if (promise_base* const bound = self.target_.place.bound) {
        self.end(); // so that its destructor does not wait
        bound->owner().abandoned(*bound);
    } else {
        self.lost_executor_ = true;
        if (!submit_scope::notice(self)) {
            self.resume_anywhere();
        }
    }
}

void remote_op::settle_on_delivery() noexcept {
    deliver = [](queue_node& node, event_loop& here) noexcept {
        static_cast<remote_op&>(static_cast<work&>(node)).settle(here);
    };
}

/// On a context's thread the context adopts the coroutine, which then waits in the ready queue.
/// Exception: an executor that runs inside a coroutine of the context resumes its own coroutines.
void remote_op::resume_here(const executor_place& place, bool scoped) noexcept {
    if (current_loop != nullptr && !(scoped && executor_scope::is_here())) {
        settle(*current_loop);
        return;
    }
    resumptions::run(*this, place);
}

void remote_op::settle(event_loop& loop) noexcept {
    COIL_ASSERT(handoff_.is(handoff::arriving) && loop.on_owner_thread());
    handoff_.enqueue();
    queue_ = &loop;
    if (away_node_ != nullptr) {
        loop.tasks().await_ends(*away_node_);
    }
    settle_in(loop, root_, *this, waiter_);
}

// ---- destructors

void remote_op::require_own_thread() const noexcept {
    if (target_.loop != nullptr && !target_.loop->on_owner_thread()) {
        end_with_misuse("a coroutine was destroyed while it waits for another executor, and not by "
                        "its own context.");
    }
}

void remote_op::block_until_complete() noexcept {
    if (!handoff_.abandon()) {
        wait_until_back(nullptr);
        return;
    }
    while (!handoff_.is_complete()) {
        futex_wait(handoff_.address(), handoff::abandoned);
    }
    end();
}

/// A destructor's wait on a context's thread. Meanwhile the thread does the work for which other
/// threads wait.
class remote_op::return_wait {
    using clock = std::chrono::steady_clock;

public:
    return_wait(event_loop& loop, const promise_base* other) noexcept
        : loop_(loop), other_(other), waits_(loop.waiting_destructors()) {}
    return_wait(const return_wait&) = delete;
    return_wait& operator=(const return_wait&) = delete;

    template <class Predicate>
    void until(Predicate is_back) noexcept {
        if (loop_.waiting_destructors().is_aside()) {
            wait_aside(is_back);
        } else {
            wait_here(is_back);
        }
    }

private:
    template <class Predicate>
    void wait_here(Predicate is_back) noexcept {
        constexpr int often = 32;
        for (int waited = 0; !is_back(); ++waited) {
            serve();
            if (is_back()) {
                break;
            }
            const bool late = waited > often;
            loop_.wait_for_messages(late);
            report_if_too_long(late);
        }
        loop_.kills().wait_ended(loop_);
    }

    template <class Predicate>
    void wait_aside(Predicate is_back) noexcept {
        while (!is_back()) {
            if (other_ != nullptr && no_coroutine_is_active()) {
                loop_.abandon_tree(*other_);
            }
            if (!is_back()) {
                loop_.waiting_destructors().wait_aside(is_back);
                report_if_too_long(!is_back());
            }
        }
    }
    /// In the middle of a turn a task below a frame on a side stack may be the one that runs.
    [[nodiscard]] bool no_coroutine_is_active() const noexcept {
        return loop_.is_ending() || loop_.kills().is_between_turns();
    }

    void serve() noexcept {
        loop_.refuse_unwanted();
        event_loop::service_idle_loops();
        if (loop_.is_ending()) {
            loop_.abandon_remote_children();
        }
        if (other_ != nullptr) {
            loop_.abandon_tree(*other_);
        }
        loop_.kills().process_arrived();
        if (!no_coroutine_is_active()) {
            loop_.kills().process_blocked(loop_);
        }
        loop_.waiting_destructors().resume_aside();
    }

    /// Some destructors wait for each other for ever (see architecture.md).
    void report_if_too_long(bool may_be_late) noexcept {
        if (may_be_late && other_ != nullptr && !reported_ &&
            clock::now() - begin_ > std::chrono::seconds(2)) {
            reported_ = true;
            std::fputs("coil: a destructor has been waiting for 2 s for a task on another context "
                       "or executor to end. The frame of an on() was destroyed while that task "
                       "runs, or while its thread is in such a destructor itself: await "
                       "scope::join(), and leave a scope without it only by an exception.\n",
                       stderr);
        }
    }

    event_loop& loop_;
    const promise_base* const other_;
    const destructor_waits::scope waits_;
    const clock::time_point begin_ = clock::now();
    bool reported_ = false;
};

void remote_op::wait_until_back(const promise_base* other) noexcept {
    require_own_thread();
    const destructor_waits::use_of_task own(root_);
    if (target_.loop != nullptr) {
        // After this wait the coroutine is in the ready queue, from which the destructor removes
        // it.
        return_wait(*target_.loop, other).until([this]() noexcept { return !is_elsewhere(); });
        return;
    }
    if (!target_.place.executor || target_.place.executor.functions()->take_out == nullptr) {
        end_with_misuse(is_pending()
                            ? "a coroutine was destroyed while it waits for another executor, and "
                              "not by its own context."
                        : target_.place.executor
                            ? "a coroutine is destroyed while the executor that resumes it has it "
                              "queued."
                            : "a coroutine is destroyed while another thread resumes it.");
    }
    // The target is an executor that destroys its own coroutines, and is about to end.
    if (current_loop != nullptr) {
        bool taken = false;
        return_wait(*current_loop, other).until([this, &taken]() noexcept {
            taken = taken || take_from_owner();
            return taken;
        });
    } else {
        while (!take_from_owner()) {
            event_loop::service_idle_loops();
            const std::timespec a_while{0, 20'000};
            ::nanosleep(&a_while, nullptr);
        }
    }
    end();
}

bool remote_op::take_from_owner() noexcept {
    const executor_ref owner = target_.place.executor;
    return owner.functions()->take_out(owner.object(), *this);
}

} // namespace coil::detail
