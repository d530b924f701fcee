// What tells the watchdog what to watch.

#include "watched_run.hpp"

#include "stall_watchdog.hpp"
#include "watched_pool.hpp"

#include <coil/base/assert.hpp>

#include <csignal>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// ThreadSanitizer admits no new threads in the child of a process that has several.
#if defined(__SANITIZE_THREAD__)
constexpr bool has_thread_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool has_thread_sanitizer = true;
#else
constexpr bool has_thread_sanitizer = false;
#endif
#else
constexpr bool has_thread_sanitizer = false;
#endif
constexpr bool is_default = COIL_ASSERTIONS != 0 && !has_thread_sanitizer;

} // namespace

watched_run::watched_run(const io_context_options& options, const ready_queue& ready,
                         live_metrics& metrics) noexcept
    : options_(options), ready_(ready), metrics_(metrics) {
    using use = watchdog_options::use;
    const use wanted = options.watchdog.enabled;
    is_watched_ = wanted == use::on || (wanted == use::automatic && is_default);
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
