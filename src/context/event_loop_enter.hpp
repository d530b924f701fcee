#pragma once

// The system call and what follows it, inlined into the loop. A return taken right after
// io_uring_enter is mispredicted (the kernel leaves the processor's return stack empty), about 100
// ns each: so nothing returns between the call and the next turn.

#include <coil/context/event_loop.hpp>

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace coil::detail {

/// The kernel stopped talking to us: what it holds can be neither completed nor cancelled.
[[noreturn]] void end_without_kernel(int error) noexcept;

inline constexpr std::uint64_t kind_mask = 7; // see completion_kind

[[gnu::always_inline]] inline void event_loop::route(const uring::cqe& completion) noexcept {
    const auto kind = static_cast<completion_kind>(completion.user_data & kind_mask);
    const auto address = static_cast<std::uintptr_t>(completion.user_data & ~kind_mask);
    switch (kind) {
    case completion_kind::entry: {
        auto& entry = *reinterpret_cast<ring_entry*>(address);
        constexpr std::uint32_t parts = uring::cqe_flag::more | uring::cqe_flag::notif;
        if ((completion.flags & parts) != 0) [[unlikely]] {
            if ((completion.flags & uring::cqe_flag::notif) == 0 ||
                zero_copies_.awaits_notification(&entry)) {
                entry.owner->on_part(entry, completion);
            }
            break;
        }
        entry.answer(completion);
        io_wait& wait = *entry.owner;
        if (wait.plain_) [[likely]] {
            entry.completed = true;
            --in_flight_;
            wait.finish_unobserved();
            ready_.push(wait.node(), wait.node().coroutine);
        } else {
            wait.on_completion(entry);
        }
        break;
    }
    case completion_kind::cancel:
        reinterpret_cast<io_wait*>(address)->on_cancel_answered(completion.res);
        break;
    case completion_kind::wake:
        watching_ = false;
        wakes_.saw(completion.res > 0 ? wake_count_ : 0);
        break;
    case completion_kind::ignore:
        break;
    }
}

[[gnu::always_inline]] inline void event_loop::reap() noexcept {
    metrics_.completions +=
        ring_->for_each_completion([this](const uring::cqe& completion) { route(completion); });
}

[[gnu::always_inline]] inline void event_loop::enter(unsigned min_complete,
                                                     const uring::timespec* timeout,
                                                     unsigned min_wait_us) noexcept {
    ++metrics_.enters;
    const int submitted =
        ring_->enter(min_complete, uring::enter_flag::getevents, timeout, min_wait_us);
    if (ring_->overflowed()) [[unlikely]] {
        ++metrics_.overflows;
    }
    if (submitted > 0) {
        metrics_.submissions += static_cast<unsigned>(submitted);
    } else if (submitted == -EBUSY) {
        ++metrics_.refusals; // completions overflowed: reaping makes room
    } else if (submitted == -EAGAIN) {
        ++metrics_.refusals;
        if (min_complete > 0) {
            // No memory for requests in the kernel: let others give some back instead of spinning.
            const std::timespec pause{0, 1'000'000};
            ::nanosleep(&pause, nullptr);
        }
    }
    // -EINTR, -ETIME: the loop looks again.
    else if (submitted == -EPERM || submitted == -EACCES || submitted == -ENOSYS) [[unlikely]] {
        end_without_kernel(submitted);
    }
}

/// For those who read it on other threads: what would cost too much to write as it changes.
inline void event_loop::publish() noexcept {
    metrics_.tasks_started.set(roots_.inserted());
    metrics_.tasks.set(tasks());
    balance_.set(tasks() - received_roots_); // one word: never received, and not counted
    metrics_.in_flight.set(in_flight_);
    metrics_.timers.set(timers_.size());
    metrics_.back_pressure_waits.set(waited_);
}

} // namespace coil::detail
