#pragma once

#include <pthread.h>
#include <signal.h>

namespace coil::detail {

/// Blocks all signals of the calling thread while it exists. A thread that is started meanwhile
/// inherits the signal mask, so that signals are delivered to the program's own threads only.
class signals_blocked {
public:
    /// Blocks all signals except `except`, or all if that is 0.
    explicit signals_blocked(int except = 0) noexcept {
        ::sigset_t blocked;
        ::sigfillset(&blocked);
        if (except != 0) {
            ::sigdelset(&blocked, except);
        }
        ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
    }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;
    ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    ::sigset_t before_;
};

} // namespace coil::detail
