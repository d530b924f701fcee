// The beginning and the end of a loop and of its ring.

#include "event_loop_enter.hpp"
#include "kernel_choice.hpp"

#include <coil/context/default_kernel.hpp>
#include <coil/context/event_loop.hpp>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <utility>

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

} // namespace

kernel_factory& default_kernel_factory() noexcept {
    static kernel_factory factory;
    return factory;
}

event_loop::event_loop(io_context& context, const io_context_options& options)
    : limit_(options.max_in_flight), idle_(options.idle), context_(context), options_(options) {
    open_ring();
    wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), "coil: eventfd");
    }
}

event_loop::~event_loop() {
    leave_list();
    discard_mail();
    event_loop* const outer = std::exchange(current_loop, this);
    close_ring();
    deliver_inbox(); // from those who found the ring still open
    ending_ = true;
    drop_functions();
    timers_.clear(); // of eager operations that have ended
    current_loop = outer;
    ::close(wake_fd_);
}

/// Nothing is in flight, but tasks that never started have parameters whose destructors may want
/// the context.
void event_loop::discard_mail() noexcept {
    if (!begin_visit()) {
        end_with_misuse("a context that runs is to discard what was posted to it.");
    }
    event_loop* const outer = std::exchange(current_loop, this);
    std::swap(root_list::removed_on_this_thread, roots_removed_);
    shut_down();
    stop_requested_ = false; // by a destructor: there is nothing left that it could stop
    left_over_.store(false, std::memory_order_relaxed);
    publish();
    std::swap(root_list::removed_on_this_thread, roots_removed_);
    current_loop = outer;
    end_visit();
}

/// What the others see is as old as the last turn. A task that gives out work sees its own.
std::uint64_t event_loop::load() const noexcept {
    const std::uint64_t balance = on_owner_thread() ? tasks() - received_roots_ : balance_.get();
    // Without an order between the two, what was received may not have been sent yet.
    const auto load =
        static_cast<std::int64_t>(balance + sent_roots_.load(std::memory_order_relaxed));
    return load > 0 ? static_cast<std::uint64_t>(load) : 0;
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
        open_chosen_ring(ring_, ring_options_for(options_), options_.kernel);
    }
    completes_by_itself_ = ring_->get_kernel().completes_by_itself();
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

} // namespace coil::detail
