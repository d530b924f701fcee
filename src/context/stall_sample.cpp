// Interrupts a thread to see what it does.

#include "stall_sample.hpp"

#include "unwound.hpp"

#include <coil/core/detail/await_count.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <mutex>

#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// There is at most one request at a time. A signal that arrives after the watchdog has given up
/// finds `none`, or a request to another thread, and does nothing.
struct sample_request {
    enum class state : int { none, posted, taking, done };

    std::atomic<state> now{state::none};
    ::pid_t thread = 0;
    const ready_queue* ready = nullptr;
    const counter* turns = nullptr;
    stall_sample* to = nullptr;
};

constinit sample_request current;

::pid_t this_thread() noexcept { return static_cast<::pid_t>(::syscall(SYS_gettid)); }

/// The frames of the handler, which come first, are dropped when the interrupted frame is reached:
/// the unwinder marks it as interrupted rather than at a call. If a sanitizer has delayed the call
/// of the handler, there is no such frame, and all frames are kept.
struct unwinding {
    stall_sample& sample;
    bool is_inside = false;
};

::_Unwind_Reason_Code add_frame(::_Unwind_Context* frame, void* argument) noexcept {
    auto& walk = *static_cast<unwinding*>(argument);
    const unwound at(frame);
    if (at.is_interrupted && !walk.is_inside) {
        walk.is_inside = true;
        walk.sample.stack_size = 0;
    }
    if (at.position != nullptr) {
        walk.sample.stack[walk.sample.stack_size++] = at.position;
    }
    return walk.sample.stack_size < stall_sample::most_stack ? ::_URC_NO_REASON
                                                             : ::_URC_END_OF_STACK;
}

void take(const ready_queue& ready, const counter& turns, stall_sample& to) noexcept {
    unwinding walk{to};
    ::_Unwind_Backtrace(&add_frame, &walk);
    to.task.find(ready.last_popped().address());
    to.popped = ready.popped();
    to.awaited = awaits_on_this_thread;
    to.turns = turns.get();
}

void on_signal(int, ::siginfo_t*, void*) noexcept {
    using state = sample_request::state;
    const int error = errno;
    state expected = state::posted;
    if (current.now.load(std::memory_order_acquire) == state::posted &&
        current.thread == this_thread() &&
        current.now.compare_exchange_strong(expected, state::taking)) {
        take(*current.ready, *current.turns, *current.to);
        current.now.store(state::done, std::memory_order_release);
    }
    errno = error;
}

int install() noexcept {
    for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
        struct ::sigaction now{};
        if (::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
            now.sa_handler == SIG_DFL) {
            struct ::sigaction ours{};
            ours.sa_sigaction = &on_signal;
            ours.sa_flags = SA_SIGINFO | SA_RESTART;
            ::sigfillset(&ours.sa_mask);
            return ::sigaction(signal, &ours, nullptr) == 0 ? signal : 0;
        }
    }
    return 0;
}

} // namespace

int stall_signal() noexcept {
    // Not a local static: the child of a fork() during its initialisation would wait for ever.
    static constinit std::atomic<int> chosen{-1};
    int signal = chosen.load(std::memory_order_acquire);
    if (signal < 0) {
        // The first unwinding loads and initialises the unwinder, which a handler must not do.
        stall_sample first;
        unwinding walk{first};
        ::_Unwind_Backtrace(&add_frame, &walk);
        const int installed = install();
        if (chosen.compare_exchange_strong(signal, installed, std::memory_order_acq_rel)) {
            return installed;
        }
        // Another thread was first, perhaps with another signal.
        if (installed > 0 && installed != signal) {
            ::signal(installed, SIG_DFL);
        }
    }
    return signal;
}

void forget_sample() noexcept { current.now.store(sample_request::state::none); }

bool take_sample(::pid_t thread, const ready_queue& ready, const counter& turns,
                 stall_sample& to) noexcept {
    using state = sample_request::state;
    to = {};
    current.thread = thread;
    current.ready = &ready;
    current.turns = &turns;
    current.to = &to;
    current.now.store(state::posted, std::memory_order_release);
    if (::syscall(SYS_tgkill, ::getpid(), thread, stall_signal()) != 0) {
        current.now.store(state::none);
        return false;
    }
    constexpr int most_pauses = 4000; // pauses of 50 µs
    for (int i = 0; current.now.load(std::memory_order_acquire) != state::done; ++i) {
        state expected = state::posted;
        if (i >= most_pauses && current.now.compare_exchange_strong(expected, state::none)) {
            return false; // the thread blocks the signal, or gets no CPU time
        }
        const std::timespec pause{0, 50'000};
        ::nanosleep(&pause, nullptr);
    }
    current.now.store(state::none, std::memory_order_relaxed);
    return true;
}

} // namespace coil::detail
