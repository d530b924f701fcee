// A turn of the loop: what runs, and how it waits.

#include "event_loop_enter.hpp"

#include <coil/context/event_loop.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/core/backoff.hpp>
#include <coil/core/frame_allocator.hpp>
#include <coil/core/transfer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <sched.h>

namespace coil::detail {

namespace {

void print_unhandled(const char* where, const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "coil: %s: an exception that nobody receives: %s\n", where, e.what());
    } catch (...) {
        std::fprintf(stderr, "coil: %s: an unknown exception that nobody receives\n", where);
    }
}

constexpr std::int64_t refused_park_ns = 1'000'000;

} // namespace

/// Marks this thread as the loop's for the duration of run(), and leaves nothing behind however it
/// ends.
class event_loop::running {
public:
    explicit running(event_loop& loop) : loop_(loop), outer_(current_loop) {
        loop_.ring_.bind_to_this_thread();
        if (loop_.options_.cpu_affinity >= 0) {
            ::sched_getaffinity(0, sizeof affinity_, &affinity_);
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(static_cast<unsigned>(loop_.options_.cpu_affinity), &one);
            if (::sched_setaffinity(0, sizeof one, &one) != 0) {
                const int error = errno;
                throw std::system_error(error, std::generic_category(),
                                        "coil: cpu_affinity " +
                                            std::to_string(loop_.options_.cpu_affinity));
            }
        }
        current_loop = &loop_;
        loop_.ring_->register_ring_fd();
        std::swap(task_list::removed_on_this_thread, loop_.tasks_removed_);
        loop_.probe_.rest();
        loop_.meter_.reset(loop_.now_ns());
    }
    ~running() {
        loop_.meter_.lap(loop_.now_ns());
        loop_.publish();
        loop_.metrics_.ready.set(loop_.ready_.size());
        std::swap(task_list::removed_on_this_thread, loop_.tasks_removed_);
        loop_.stop_watching();
        // The registration would keep the ring alive if the context is destroyed by another thread.
        loop_.ring_->unregister_ring_fd();
        if (loop_.options_.cpu_affinity >= 0) {
            ::sched_setaffinity(0, sizeof affinity_, &affinity_);
        }
        current_loop = outer_;
    }
    running(const running&) = delete;
    running& operator=(const running&) = delete;

private:
    event_loop& loop_;
    event_loop* outer_;
    cpu_set_t affinity_{};
};

// ---- idling
// ---------------------------------------------------------------------------------------------

/// Submits and reaps; never sleeps.
[[gnu::always_inline]] inline void event_loop::poll() noexcept {
    if (ring_->sq_ready() > 0 || ring_->needs_enter()) {
        ring_.enter(0, nullptr, 0);
    }
    reap();
}

/// poll(), which also learns how many completions a poll finds when it finds any.
[[gnu::always_inline]] inline void event_loop::poll_cq() noexcept {
    const std::uint64_t before = metrics_.completions.get();
    poll();
    if (const auto found = static_cast<std::int32_t>(metrics_.completions.get() - before);
        found > 0) {
        parker_.history().on_polled(found);
    }
}

[[gnu::always_inline]] inline void event_loop::park(std::int64_t until_ns) noexcept {
    if (!parker_.announce()) {
        parker_.lap_if_due();
        poll(); // not while nobody could wake us
        return;
    }
    if (!(has_work() || work_guard_.held())) {
        parker_.unpark();
        return;
    }
    const bool leaves = round_.takes_part() && !has_work();
    if (leaves) {
        round_.become_idle(inbox_);
    }
    parker_.sleep(until_ns);
    if (leaves) {
        round_.become_active();
    }
}

/// Nothing is ready: submits, then waits as the idle policy says.
[[gnu::always_inline]] inline void event_loop::wait() noexcept {
    metrics_.ready.set(0);
    if (submissions_.sq_starved()) [[unlikely]] {
        // What fills the queue may wait for what is held back. No memory in the kernel: look again
        // soon.
        parker_.lap_if_due();
        poll();
        if (ring_->sq_ready() > 0) {
            park(std::min(next_deadline(), now_ns() + refused_park_ns));
            reap();
        }
        return;
    }
    // Without completions that appear in memory there is nothing to spin for.
    if (ring_.posts_asynchronously() &&
        parker_.history().should_spin(submissions_.in_flight() > 0)) {
        parker_.coalesce();
        poll_cq();
        if (!ready_.empty() || submissions_.sq_starved()) {
            return; // a chain that moved on may have left room for what is held back
        }
        if (parker_.spin(next_deadline())) {
            if (inbox_.empty()) {
                poll_cq();
            } else {
                deliver_inbox(); // at once: what came by the ring is seen at the end of the turn
            }
            return;
        }
        parker_.history().on_fruitless_spin();
    }
    if (frame_cache_overflowed) [[unlikely]] {
        park_after_peak();
    } else {
        park(next_deadline());
    }
    reap();
}

/// Many frames have been freed: a while later, if there is nothing to do then, their memory goes
/// back.
[[gnu::noinline, gnu::cold]] void event_loop::park_after_peak() noexcept {
    constexpr std::int64_t a_while_ns = 100'000'000;
    const std::int64_t now = now_ns();
    if (trim_due_ns_ == 0) {
        trim_due_ns_ = now + a_while_ns;
    } else if (now >= trim_due_ns_) {
        trim_due_ns_ = 0;
        trim_frame_cache();
        park(next_deadline());
        return;
    }
    park(std::min(next_deadline(), trim_due_ns_));
}

/// When there will be something to do by the clock: a timer, a cancellation to be requested again.
std::int64_t event_loop::next_deadline() noexcept {
    const std::int64_t timer = parker_.history().wake_up_for(timers_.next_ns());
    return cancellations_.has_retries() ? std::min(timer, cancellations_.retry_at_ns()) : timer;
}

// ---- running
// ----------------------------------------------------------------------------------------

void event_loop::run() {
    if (!begin_running()) {
        throw std::logic_error("coil: io_context::run() called while the context runs already");
    }
    struct ending {
        event_loop& loop;
        ~ending() {
            loop.leave_round();
            loop.end_running();
        }
    };
    const ending at_end{*this};
    const running scope(*this);
    begin_own_run();
    turn_until_done();
}

void event_loop::turn_until_done() try {
    for (;;) {
        if (stop_requested_) [[unlikely]] {
            meter_.lap(now_ns()); // what follows is no turn
            shut_down();
            stop_requested_ = false;
            return;
        }
        run_turn();
        if (!ready_.empty()) {
            parker_.lap_if_due();
            poll();
        } else if (stop_requested_) {
            continue;
        } else if (has_work() || work_guard_.held() || !inbox_.empty()) {
            wait(); // the inbox last: what was posted before the hold ended is seen there
            if (round_.is_over()) {
                cancel_detached_operations();
                return; // what has come by the inbox since is for the next round
            }
        } else if (submissions_.in_flight() > 0) {
            cancel_detached_operations();
        } else {
            return;
        }
    }
} catch (...) {
    shut_down();
    stop_requested_ = false;
    throw;
}

void event_loop::stop() noexcept {
    if (on_owner_thread()) {
        stop_requested_ = true;
        return;
    }
    // By the inbox: then posting is the last thing that another thread does here, and the context
    // may go as soon as run() has returned.
    if (stop_.make()) {
        stop_node_.deliver = [](queue_node&, event_loop& loop) noexcept {
            if (loop.serviced_) {
                loop.stop_came_ = true; // for the next run, before anything else
            } else {
                loop.stop_requested_ = loop.stop_.arrived();
            }
        };
        post(stop_node_);
    }
}

void event_loop::hold_work_guard() noexcept { work_guard_.acquire(); }

void event_loop::release_work_guard() noexcept {
    if (work_guard_.release(inbox_)) {
        wake();
    }
}

/// Its loop is a few instructions long: where it lies in the cache's lines is a tenth of what a
/// switch between coroutines costs, and should not depend on what surrounds it.
[[gnu::noinline, gnu::aligned(64)]] bool event_loop::run_ready() {
    metrics_.ready.set(ready_.size());
    unsigned left = budget_.resumptions();
    if (probe_.due()) [[unlikely]] {
        left = run_probed(left);
    }
    for (; left > 0; --left) {
        if (!ready_.has_next()) {
            return false;
        }
        resume(ready_.pop());
    }
    return true;
}

/// Resumes up to the coroutine that the probe follows, if its turn is now. How many may be resumed
/// after that.
[[gnu::noinline, gnu::cold]] unsigned event_loop::run_probed(unsigned left) {
    if (ready_.empty()) {
        probe_.look_again(0);
        return left;
    }
    if (!probe_.following()) {
        probe_.follow(ready_.size() - 1, now_ns());
    }
    if (probe_.ahead() >= left) {
        probe_.look_again(left);
        return left;
    }
    for (std::size_t ahead = probe_.ahead(); ahead > 0 && ready_.has_next(); --ahead, --left) {
        resume(ready_.pop());
    }
    probe_.resumed(now_ns());
    return left;
}

void event_loop::deliver_inbox() noexcept {
    queue_node* node = inbox_.take_all();
    if (node == nullptr) {
        return;
    }
    parker_.history().on_inbox_delivered();
    std::uint64_t nodes = 0;
    while (node != nullptr) {
        queue_node* following = node->next;
        node->deliver(*node, *this);
        node = following;
        ++nodes;
    }
    metrics_.wake_ups_elided += nodes - parker_.take_woken_by_posts();
}

void event_loop::wait_for_messages(bool late) noexcept {
    if (driver_ != nullptr) {
        if (asleep_) { // this is not in a turn: one is to follow
            wake_up();
            driver_->wake(*this);
        }
        driver_->run_others_until_message(*this, !late);
        task_list::removed_on_this_thread += std::exchange(removed_while_served_, 0);
    } else if (!is_running()) { // nobody has this ring
        if (inbox_.empty()) {
            const std::timespec a_while{0, late ? 10'000'000 : 100'000};
            ::nanosleep(&a_while, nullptr);
        }
    } else if (inbox_.empty()) {
        if (parker_.announce()) {
            const uring::timespec a_while{0, late ? 10'000'000 : 1'000'000};
            ring_.enter(1, &a_while, 0);
            parker_.unpark();
        } else {
            poll();
        }
        reap();
    }
    deliver_inbox();
}

void event_loop::fire_timers() noexcept { timers_.expire(now_ns()); }

void event_loop::report_unhandled(std::exception_ptr error) noexcept {
    ++metrics_.unhandled_exceptions;
    if (options_.on_unhandled_exception) {
        options_.on_unhandled_exception(std::move(error));
    } else {
        print_unhandled(options_.name.empty() ? "io_context" : options_.name.c_str(), error);
    }
}

void report_unhandled(std::exception_ptr error) noexcept {
    if (current_loop != nullptr) {
        current_loop->report_unhandled(std::move(error));
    } else {
        print_unhandled("outside of a context", error);
    }
}

/// Any thread.
void event_loop::wake() noexcept {
    if (driver_ != nullptr) [[unlikely]] {
        driver_->wake(*this);
        return;
    }
    parker_.descriptor().signal();
}

void event_loop::stop_watching() noexcept {
    wake_descriptor& descriptor = parker_.descriptor();
    if (descriptor.is_watched()) {
        descriptor.expect_signal();
        descriptor.signal();
    }
    while (descriptor.is_watched()) {
        ring_.enter(1, nullptr, 0);
        reap();
    }
    descriptor.await_signals();
}

} // namespace coil::detail
