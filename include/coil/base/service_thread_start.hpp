#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>

namespace coil::detail {

/// The processors that the calling thread could use before a context pinned it, or null if it is
/// not pinned.
constinit inline thread_local const ::cpu_set_t* processors_before_pinning = nullptr;

/// Exists while a thread of the library starts another one, which inherits what it sets: all
/// signals are blocked, so that they are delivered to the program's own threads only; and a pinned
/// thread may use the processors that it could use before, so that a thread which works for all
/// contexts does not compete with one of them for its processor.
class service_thread_start {
public:
    /// Blocks all signals except `except`, or all if that is 0.
    explicit service_thread_start(int except = 0) noexcept {
        ::sigset_t blocked;
        ::sigfillset(&blocked);
        if (except != 0) {
            ::sigdelset(&blocked, except);
        }
        ::pthread_sigmask(SIG_SETMASK, &blocked, &signals_);
        unpinned_ = processors_before_pinning != nullptr &&
                    ::sched_getaffinity(0, sizeof pinned_to_, &pinned_to_) == 0 &&
                    ::sched_setaffinity(0, sizeof pinned_to_, processors_before_pinning) == 0;
    }
    service_thread_start(const service_thread_start&) = delete;
    service_thread_start& operator=(const service_thread_start&) = delete;
    ~service_thread_start() {
        if (unpinned_) {
            ::sched_setaffinity(0, sizeof pinned_to_, &pinned_to_);
        }
        ::pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
    }

private:
    ::sigset_t signals_;
    ::cpu_set_t pinned_to_;
    bool unpinned_ = false;
};

} // namespace coil::detail
