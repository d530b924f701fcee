#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/base/std_function.hpp>
#include <coil/context/detail/backend_factory.hpp>
#include <coil/context/idle_policy.hpp>
#include <coil/context/napi_options.hpp>
#include <coil/context/watchdog_options.hpp>

#include <cstdint>
#include <exception>
#include <string>

namespace coil {

/// The backend that executes a context's I/O.
enum class io_backend {
    /// The environment variable COIL_BACKEND (`io_uring` or `epoll`) decides. Without it, io_uring,
    /// or epoll if the system refuses io_uring permanently (a seccomp filter, a sysctl, a kernel
    /// that is too old). The first fallback in a process prints a line with the reason on stderr.
    automatic,
    io_uring, ///< Linux's io_uring, or an error with the reason
    epoll,    ///< emulated in user space on epoll(7): see uring::make_epoll_backend
};

using kernel_kind [[deprecated("use io_backend")]] = io_backend; // retired

/// Options of an io_context. The defaults suit a server.
struct io_context_options {
    /// Submission queue entries, rounded up to a power of two. Limits the size of a batch and of a
    /// linked chain, not the number of operations in flight.
    unsigned entries = 512;
    /// Completion queue entries; 0: eight times `entries`. The kernel keeps further completions,
    /// which are fetched later: slower, but never lost.
    unsigned cq_entries = 0;
    /// The maximum number of SQEs in flight; further operations wait in order. Operations that wait
    /// forever count as well, so this limits memory, not a rate.
    std::uint32_t max_in_flight = UINT32_MAX;
    /// The maximum number of direct descriptors (io::accept_direct, ...). Their table is created on
    /// first use, smaller if RLIMIT_NOFILE requires it, and takes 8 bytes per slot.
    unsigned direct_descriptors = 1024;
    /// The maximum number of slots for io::registered_buffers; created on first use.
    unsigned registered_buffers = 1024;
    io_backend backend = io_backend::automatic;
    idle_policy idle = idle_policy::spin(std::chrono::microseconds(50));
    /// The longest time by which a sleep or a time limit may end late so that timers share
    /// wake-ups; rounding adds up to 33 µs. With thousands of sleeping coroutines, wake-ups take
    /// most of the CPU time. Unless four timers or more have fired at each of the last two
    /// wake-ups, the delay is 100 µs at most. Values below 66 µs mean no delay, at the cost of up
    /// to 30 000 wake-ups per second; those above an hour mean an hour. Compare PR_SET_TIMERSLACK
    /// in prctl(2).
    std::chrono::nanoseconds timer_slack = std::chrono::microseconds(500);
    /// Polling of network devices by the kernel while the context waits. Off by default.
    napi_options napi = {};
    /// The processor to run on while run() or start() is active; -1: any. The ring and the memory
    /// of the context are created on that processor, and so in its NUMA node.
    int cpu_affinity = -1;
    /// Additional io_uring setup flags (uring::setup::sqpoll, iopoll); coil's own flags that
    /// conflict with them are dropped. With iopoll the kernel does not signal completions, so such
    /// a context polls all the time and never sleeps.
    std::uint32_t setup_flags = 0;
    /// Called on the context's thread with the exception that left a detached task, or a spawned
    /// task whose handle was destroyed before it was joined. Must not throw. By default, prints a
    /// line on stderr.
    std::function<void(std::exception_ptr)> on_unhandled_exception = {};
    /// A backend that replaces the one named by `backend`: for tests and simulations.
    detail::backend_factory make_backend = {};
    /// The name of the thread created by start() (15 characters are shown), and of the context in
    /// messages.
    std::string name = {};
    /// The path of a Unix socket on which a separate thread reports what this process's contexts
    /// are doing, while a context with that path exists: `coil-top PATH`, or `curl --unix-socket
    /// PATH http://localhost/tasks`. The socket's mode is 0600. Empty: no socket. No effect in a
    /// simulated world. (docs/guide/observing.md)
    std::string admin_socket = {};
    /// A signal (SIGUSR1, ...) on which a separate thread writes dump_tasks() of all contexts of
    /// the process to stderr, while a context with this option exists. 0: none. The program must
    /// not use that signal for anything else. No effect in a simulated world.
    int dump_signal = 0;
    /// The file to which a trace of the process is written when it exits; the environment variable
    /// COIL_TRACE does the same (trace.hpp). Empty: no trace. No effect in a simulated world.
    std::string trace_file = {};
    /// Reports turns that block the thread. On by default in debug builds of coil without
    /// sanitizers.
    watchdog_options watchdog = {};
    /// Called on the context's thread, at most once, if its tasks wait for ever: no operation is in
    /// flight, no timer is armed, and the process has no other thread that could wake them. The
    /// text lists the tasks and what they wait for. The function may stop the context, or make a
    /// task ready; an exception that it throws leaves run() after a shutdown. By default, prints
    /// the text on stderr. For a runtime, one of its contexts calls it, if all of them wait for
    /// each other.
    std::function<void(const std::string&)> on_deadlock = {};
};

} // namespace coil
