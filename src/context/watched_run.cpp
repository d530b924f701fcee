// Registers a context with the watchdog while it runs.

#include "watched_run.hpp"

#include "stall_watchdog.hpp"
#include "watched_pool.hpp"

#include <coil/base/assert.hpp>
#include <coil/core/config.hpp>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// Whether a context with watchdog_options::use::automatic is watched. Not under a sanitizer: it
/// makes programs several times slower, and ThreadSanitizer forbids new threads after a fork(2) of
/// a process with several threads.
bool is_default() noexcept {
    if (const char* const word = std::getenv("COIL_WATCHDOG")) {
        return std::strcmp(word, "on") == 0;
    }
    return COIL_ASSERTIONS != 0 && COIL_SANITIZED == 0;
}

} // namespace

watched_run::watched_run(const io_context_options& options, const ready_queue& ready,
                         live_metrics& metrics, const turn_meter& meter) noexcept
    : options_(options), ready_(ready), metrics_(metrics), meter_(meter) {
    using use = watchdog_options::use;
    const use wanted = options.watchdog.enabled;
    is_watched_ = wanted == use::on || (wanted == use::automatic && is_default());
    if (!is_watched_) {
        return;
    }
    thread_ = static_cast<::pid_t>(::syscall(SYS_gettid));
    late_resumptions_ = metrics_.late_resumptions.get();
    late_timers_ = metrics_.late_timers.get();
    if (options.watchdog.interrupts && stall_signal() != 0) {
        ::sigset_t one{};
        ::sigset_t before{};
        ::sigemptyset(&one);
        ::sigaddset(&one, stall_signal());
        ::pthread_sigmask(SIG_UNBLOCK, &one, &before);
        unblocked_ = ::sigismember(&before, stall_signal()) == 1;
    }
    stall_watchdog::instance().add(*this);
}

watched_run::~watched_run() {
    if (!is_watched_) {
        return;
    }
    stall_watchdog::instance().remove(*this);
    if (unblocked_) {
        ::sigset_t one{};
        ::sigemptyset(&one);
        ::sigaddset(&one, stall_signal());
        ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
    }
}

void watched_pool::begin_watching() noexcept { stall_watchdog::instance().add(*this); }
void watched_pool::end_watching() noexcept { stall_watchdog::instance().remove(*this); }

} // namespace coil::detail
