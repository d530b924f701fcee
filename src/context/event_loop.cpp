#include "event_loop_enter.hpp"

#include <coil/context/default_kernel.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/core/transfer.hpp>
#include <coil/uring/prep.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace coil::detail {

namespace {

uring::ring_options ring_options_for(const io_context_options& options) {
    uring::ring_options wanted;
    wanted.entries = options.entries;
    wanted.cq_entries = options.cq_entries != 0 ? options.cq_entries : 8 * options.entries;
    wanted.start_disabled = true; // run() decides which thread it is
    if ((options.setup_flags & uring::setup::sqpoll) != 0) {
        // A polling kernel thread excludes running completions on ours.
        wanted.setup_flags &= ~(uring::setup::defer_taskrun | uring::setup::coop_taskrun |
                                uring::setup::taskrun_flag);
    }
    wanted.setup_flags |= options.setup_flags;
    return wanted;
}

void print_unhandled(const char* where, const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "coil: %s: a detached task ended with an exception: %s\n", where,
                     e.what());
    } catch (...) {
        std::fprintf(stderr, "coil: %s: a detached task ended with an unknown exception\n", where);
    }
}

/// A number that no other thread ever has. A thread's id would not do: it comes back, and the
/// kernel still takes the ring of a thread that ended for that thread's alone.
std::uint64_t this_thread_number() noexcept {
    static std::atomic<std::uint64_t> last{0};
    constinit thread_local std::uint64_t mine = 0;
    if (mine == 0) {
        mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    return mine;
}

constexpr std::int64_t retry_ns = 1'000'000;

void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace

kernel_factory& default_kernel_factory() noexcept {
    static kernel_factory factory;
    return factory;
}

event_loop::event_loop(io_context& context, const io_context_options& options)
    : limit_(options.max_in_flight), max_in_flight_(options.max_in_flight), idle_(options.idle),
      context_(context), options_(options) {
    if (options.kernel == kernel_kind::epoll) {
        throw std::system_error(ENOSYS, std::generic_category(),
                                "coil: the epoll kernel is not available in this version");
    }
    open_ring();
    wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), "coil: eventfd");
    }
}

event_loop::~event_loop() {
    // Nothing is in flight, but there may be tasks that never started, whose parameters'
    // destructors may want the context.
    event_loop* const outer = std::exchange(current_loop, this);
    shut_down();
    close_ring();
    deliver_inbox(); // from those who found the ring still open
    timers_.clear(); // of eager operations that have ended
    current_loop = outer;
    ::close(wake_fd_);
}

void event_loop::attach(ring_attachment& attachment) noexcept {
    attachment.next_ = attachments_;
    attachment.link_ = &attachments_;
    if (attachments_ != nullptr) {
        attachments_->link_ = &attachment.next_;
    }
    attachments_ = &attachment;
}

void event_loop::detach(ring_attachment& attachment) noexcept {
    *attachment.link_ = attachment.next_;
    if (attachment.next_ != nullptr) {
        attachment.next_->link_ = attachment.link_;
    }
}

void event_loop::close_ring() noexcept {
    while (attachments_ != nullptr) {
        ring_attachment& attachment = *attachments_;
        detach(attachment);
        attachment.ring_gone();
    }
    tables_.close();
    listed_ring_.forget();
    ring_.reset();
}

void event_loop::open_ring() {
    close_ring();
    if (options_.make_kernel) {
        ring_.emplace(ring_options_for(options_), options_.make_kernel());
    } else if (const kernel_factory& make = default_kernel_factory()) {
        ring_.emplace(ring_options_for(options_), make());
    } else {
        ring_.emplace(ring_options_for(options_));
    }
    listed_ring_.remember(ring_->native_handle());
    skips_completions_ = (ring_->features() & uring::feature::cqe_skip) != 0;
    min_wait_ = (ring_->features() & uring::feature::min_timeout) != 0;
    bound_to_ = 0;
}

/// The kernel gives a closed ring's memory back a while later: at RLIMIT_MEMLOCK the new one must
/// wait for that.
void event_loop::reopen_ring() {
    constexpr int attempts = 50;
    for (int attempt = 1;; ++attempt) {
        try {
            open_ring();
            return;
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::not_enough_memory || attempt == attempts) {
                throw;
            }
        }
        const std::timespec pause{0, 2'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

void event_loop::bind_to_this_thread() {
    if (ring_ && bound_to_ == this_thread_number()) {
        return;
    }
    if (!ring_ || bound_to_ != 0) {
        reopen_ring(); // the kernel lets only one thread ever use a SINGLE_ISSUER ring; nothing is
                       // in it
    }
    if (const int error = ring_->enable(); error < 0) {
        throw std::system_error(-error, std::generic_category(), "coil: enabling the ring");
    }
    bound_to_ = this_thread_number();
}

/// Marks this thread as the loop's for the duration of run(), and leaves nothing behind however it
/// ends.
class event_loop::running {
public:
    explicit running(event_loop& loop) : loop_(loop), outer_(current_loop) {
        loop_.bind_to_this_thread();
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
        loop_.ring_->attach_thread();
    }
    ~running() {
        loop_.stop_watching();
        // The registration would keep the ring alive if the context is destroyed by another thread.
        loop_.ring_->detach_thread();
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

/// Submits and looks; never sleeps.
[[gnu::always_inline]] inline void event_loop::poll() noexcept {
    if (ring_->unsubmitted() > 0 || ring_->needs_enter()) {
        enter(0, nullptr, 0);
    }
    reap();
}

/// poll(), which also learns how many completions a look finds when it finds any.
[[gnu::always_inline]] inline void event_loop::look() noexcept {
    const std::uint64_t before = metrics_.completions;
    poll();
    if (const auto found = static_cast<std::int32_t>(metrics_.completions - before); found > 0) {
        found_per_look_ += (found * one_found - found_per_look_) / 8;
    }
}

/// Completions come several at a time, but not so many that a system call for them does not matter:
/// lets some more gather. A lone client, which would wait the longer for it, never sees this.
void event_loop::gather() noexcept {
    constexpr std::int32_t least = one_found + one_found / 4;
    constexpr std::int32_t most = 16 * one_found;
    if (found_per_look_ < least || found_per_look_ > most) {
        return;
    }
    // A fraction of what this policy would spend on waiting for one completion.
    const std::int64_t end = now_ns() + idle_.limit().count() / 8;
    do {
        spin_pause();
    } while (inbox_.empty() && now_ns() < end);
}

/// True as soon as there is something to do.
bool event_loop::spin(std::int64_t until_ns) noexcept {
    constexpr int looks_between_clocks = 16;
    ++metrics_.spins;
    const std::int64_t limit = std::min(until_ns, now_ns() + idle_.limit().count());
    do {
        for (int i = 0; i < looks_between_clocks; ++i) {
            if (ring_->has_completions() || ring_->needs_enter() || !inbox_.empty()) {
                return true;
            }
            spin_pause();
        }
    } while (now_ns() < limit);
    return false;
}

[[gnu::always_inline]] inline void event_loop::park(std::int64_t until_ns) noexcept {
    watch_wake_descriptor();
    if (!watching_ || !inbox_.try_park()) {
        poll(); // not while nobody could wake us
        return;
    }
    if (!(has_work() || held_.load())) {
        wakes_due_ += inbox_.unpark() ? 0 : 1;
        return;
    }
    const bool timed = until_ns != timer_wheel::never;
    const bool measured = idle_.what() == idle_policy::kind::spin;
    const std::int64_t begin = timed || measured ? now_ns() : 0;
    const std::int64_t rest = timed ? std::max<std::int64_t>(until_ns - begin, 0) : 0;
    uring::timespec timeout{};
    if (timed) {
        timeout.tv_sec = rest / 1'000'000'000;
        timeout.tv_nsec = rest % 1'000'000'000;
    }
    ++metrics_.parks;
    if (idle_.what() == idle_policy::kind::batch && min_wait_) {
        // The kernel looks at the timeout only after the minimum.
        const std::int64_t least = std::min(idle_.limit().count(), timed ? rest : INT64_MAX);
        enter(idle_.events(), timed ? &timeout : nullptr, static_cast<unsigned>(least / 1000));
    } else {
        enter(1, timed ? &timeout : nullptr, 0);
    }
    wakes_due_ += inbox_.unpark() ? 0 : 1;
    if (timed || measured) {
        const std::int64_t end = now_ns();
        if (measured && end - begin < idle_.limit().count()) {
            spinning_pays_ = true;
        }
        if (timed && end >= until_ns) {
            no_timer_before_ns_ = until_ns + timer_gap_ns;
        }
    }
}

/// Nothing is ready: submits, then waits as the idle policy says.
[[gnu::always_inline]] inline void event_loop::wait() noexcept {
    if (lacks_room()) [[unlikely]] {
        // What fills the queue may wait for what is held back. No memory in the kernel: look again
        // soon.
        poll();
        if (ring_->unsubmitted() > 0) {
            park(std::min(next_deadline(), now_ns() + retry_ns));
            reap();
        }
        return;
    }
    // Without anything in flight only a timer or another thread can make work: nothing to spin for.
    if (idle_.what() == idle_policy::kind::spin && spinning_pays_ && in_flight_ > 0) {
        gather();
        look();
        if (!ready_.empty() || lacks_room()) {
            return; // a chain that moved on may have left room for what is held back
        }
        if (spin(next_deadline())) {
            look();
            return;
        }
        spinning_pays_ = false;
    }
    park(next_deadline());
    reap();
}

/// When there will be something to do by the clock: a timer, a cancellation to be asked for again.
/// Being woken costs far more than firing a timer, so dense timers share their wake-ups.
std::int64_t event_loop::next_deadline() noexcept {
    const std::int64_t timer = std::max(timers_.next_ns(), no_timer_before_ns_);
    return retrying_.empty() ? timer : std::min(timer, retry_at_ns_);
}

// ---- running
// ----------------------------------------------------------------------------------------

void event_loop::run() {
    if (running_.exchange(true)) {
        throw std::logic_error("coil: io_context::run() called while the context runs already");
    }
    struct ending {
        std::atomic<bool>& running;
        ~ending() { running.store(false); }
    };
    const ending at_end{running_};
    const running scope(*this);
    turn_until_done();
}

void event_loop::turn_until_done() try {
    for (;;) {
        if (stop_requested_) [[unlikely]] {
            shut_down();
            stop_requested_ = false;
            return;
        }
        run_ready();
        deliver_inbox();
        fire_timers();
        admit_queued();
        retry_cancels();
        if (!ready_.empty()) {
            poll();
        } else if (stop_requested_) {
            continue;
        } else if (has_work() || held_.load()) {
            wait();
        } else if (in_flight_ > 0) {
            end_what_no_frame_owns();
        } else {
            return;
        }
    }
} catch (...) {
    shut_down();
    throw;
}

void event_loop::stop() noexcept {
    if (on_owner_thread()) {
        stop_requested_ = true;
        return;
    }
    stop_counts_.store(true);
    // By the inbox: then posting is the last thing that another thread does here, and the context
    // may go as soon as run() has returned.
    if (!stop_posted_.exchange(true, std::memory_order_acq_rel)) {
        stop_request_.deliver = [](queue_node&, event_loop& loop) noexcept {
            loop.stop_posted_.store(false, std::memory_order_release);
            loop.stop_requested_ = loop.stop_counts_.exchange(false);
        };
        post(stop_request_);
    }
}

void event_loop::hold() noexcept { held_.store(true); }

void event_loop::release() noexcept {
    held_.store(false);
    if (inbox_.unpark_for_signal()) {
        wake();
    }
}

void event_loop::run_ready() {
    for (unsigned left = budget_; left > 0; --left) {
        if (!ready_.has_next()) {
            busy_since_ns_ = 0;
            return;
        }
        resume(ready_.pop());
    }
    adapt_budget();
}

/// A clock read per resumption would cost more than many a resumption: the time that whole turns
/// take sets the number for the next.
void event_loop::adapt_budget() noexcept {
    const std::int64_t now = now_ns();
    if (busy_since_ns_ != 0) {
        const std::int64_t took = now - busy_since_ns_;
        if (took > longest_turn_ns) {
            budget_ = std::max(budget_ / 2, 1U);
        } else if (took < longest_turn_ns / 4) {
            budget_ = std::min(budget_ * 2, largest_budget);
        }
    }
    busy_since_ns_ = now;
}

void event_loop::deliver_inbox() noexcept {
    if (inbox_.empty()) {
        return;
    }
    queue_node* node = inbox_.take_all();
    while (node != nullptr) {
        queue_node* following = node->next;
        node->deliver(*node, *this);
        node = following;
    }
}

void event_loop::fire_timers() noexcept {
    if (timers_.size() > 0) {
        timers_.expire(now_ns());
    }
}

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
        print_unhandled("join_handle", error);
    }
}

/// Any thread.
void event_loop::wake() noexcept {
    const std::uint64_t one = 1;
    // It cannot fail usefully: EAGAIN means that the counter is full of wake-ups already.
    [[maybe_unused]] const ssize_t n = ::write(wake_fd_, &one, sizeof one);
}

void event_loop::watch_wake_descriptor() noexcept {
    if (watching_ || !make_room(1)) {
        return;
    }
    uring::sqe* entry = ring_->acquire();
    *entry = uring::prep::read(wake_fd_, &wake_count_, sizeof wake_count_, 0);
    entry->user_data = static_cast<std::uint64_t>(completion_kind::wake);
    ring_->commit(entry);
    watching_ = true;
}

void event_loop::stop_watching() noexcept {
    if (watching_) {
        ++wakes_due_;
        wake();
    }
    while (watching_) {
        enter(1, nullptr, 0);
        reap();
    }
    if (wakes_due_ == 0) {
        return;
    }
    // A thread that ended a sleep may still be on its way to wake(), and this loop may be gone
    // soon: wait for its write(2), after which it touches nothing here. One more of our own, read
    // by a system call, is what shows ThreadSanitizer the order of them all.
    ++wakes_due_;
    wake();
    while (wakes_seen_ < wakes_due_) {
        std::uint64_t count = 0;
        if (::read(wake_fd_, &count, sizeof count) == sizeof count) {
            wakes_seen_ += count;
        } else {
            std::this_thread::yield();
        }
    }
    wakes_due_ = wakes_seen_ = 0;
}

// ---- shutdown
// -------------------------------------------------------------------------------------------

/// One request for all that is in flight, so that what takes long to cancel is waited for together.
/// An accelerator only: each destroyed frame makes sure of its own. The kernel searches all of them
/// for each that it cancels, so many are left to the frames, whose requests it finds by a hash.
void event_loop::cancel_everything(std::uint32_t at_most) noexcept {
    if (in_flight_ == 0 || in_flight_ > at_most || !make_room(1)) {
        return;
    }
    uring::sqe* entry = ring_->acquire();
    *entry = uring::prep::cancel_any();
    entry->user_data = static_cast<std::uint64_t>(completion_kind::ignore);
    ring_->commit(entry);
    enter(0, nullptr, 0);
    reap();
}

void event_loop::shut_down() noexcept {
    constexpr std::uint32_t many = 1024;
    ending_ = true;
    // Only run() leaves something in flight behind, and it ends with a shutdown on its own thread.
    if (on_owner_thread()) {
        cancel_queued();
        cancel_everything(many);
    }
    do {
        deliver_inbox();
        ready_.clear();
        while (!roots_.empty()) {
            promise_base& root = *roots_.first();
            root_list::remove(root);
            ready_.clear();
            root.observer().abandoned(root);
        }
    } while (!inbox_.empty());
    ready_.clear();
    if (on_owner_thread()) {
        end_what_no_frame_owns();
    }
    ready_.clear();
    ending_ = false;
}

/// Frames have ended what they own. Eager operations and streams may live elsewhere: nothing of
/// them outlives the run either.
void event_loop::end_what_no_frame_owns() noexcept {
    const bool was_ending = std::exchange(ending_, true);
    while (in_flight_ > 0 || !queued_.empty()) {
        cancel_everything(UINT32_MAX);
        const uring::timespec soon{0, retry_ns};
        enter(1, &soon, 0);
        reap();
        retry_cancels();
        cancel_queued();
    }
    ending_ = was_ending;
}

} // namespace coil::detail
