#pragma once

#include <coil/context/idle_policy.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace coil {

namespace detail {

/// For constructors that take a number: an int variable in braces would not do otherwise.
template <std::integral To, std::integral From>
To checked_number(From number) {
    if (!std::in_range<To>(number)) {
        throw std::invalid_argument("coil: a number of contexts or entries is out of range");
    }
    return static_cast<To>(number);
}

} // namespace detail

namespace uring {
class kernel;
}

namespace detail {

/// Makes the other side of a context's rings: one kernel a ring.
using kernel_factory = std::function<std::unique_ptr<uring::kernel>()>;

} // namespace detail

/// Who executes a context's I/O.
enum class kernel_kind {
    /// What the environment variable COIL_KERNEL says (`io_uring`, `epoll`); without it io_uring,
    /// and where the system refuses that for good (a seccomp filter, a sysctl, a kernel that is too
    /// old) epoll. The first time in a process a line on stderr says so and why.
    automatic,
    io_uring, ///< Linux's io_uring, or an error that says why not
    epoll,    ///< in user space over epoll(7): see uring::make_epoll_kernel
};

/// How an io_context is set up. Every member has a default that suits a server.
struct io_context_options {
    /// Submission queue entries, rounded up to a power of two. It bounds a batch and the length of
    /// a linked chain, not the number of operations in flight.
    unsigned entries = 512;
    /// Completion queue entries; 0: eight times `entries`. More completions than that at once are
    /// kept by the kernel and fetched later: slower, never lost.
    unsigned cq_entries = 0;
    /// SQEs in flight at most; further operations wait their turn, in order. Operations that wait
    /// for something that never comes count too, so this is a limit for memory, not a rate.
    std::uint32_t max_in_flight = UINT32_MAX;
    /// Direct descriptors that the context can have (io::accept_direct, ...). Their table is made
    /// at the first use, smaller where RLIMIT_NOFILE says so, and costs 8 bytes each.
    unsigned direct_descriptors = 1024;
    /// Slots for io::registered_buffers, likewise.
    unsigned registered_buffers = 1024;
    kernel_kind kernel = kernel_kind::automatic;
    idle_policy idle = idle_policy::spin(std::chrono::microseconds(50));
    /// Processor to run on, while run() or start() runs; -1: wherever the scheduler likes.
    int cpu_affinity = -1;
    /// io_uring setup flags to ask for besides coil's own (uring::setup::sqpoll, iopoll); coil's
    /// own that exclude them are dropped. With iopoll the kernel does not tell when something is
    /// complete: such a context looks all the time and never sleeps.
    std::uint32_t setup_flags = 0;
    /// Called on the context's thread with the exception that left a detached task, or that left a
    /// joined task whose handle was dropped. Must not throw. Default: a line on stderr.
    std::function<void(std::exception_ptr)> on_unhandled_exception = {};
    /// A kernel in the place of the one that `kernel` names: for tests and simulations.
    detail::kernel_factory make_kernel = {};
    /// Name of the thread that start() makes (15 characters are shown), and of the context in
    /// messages.
    std::string name = {};
};

} // namespace coil
