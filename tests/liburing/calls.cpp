#include "rings.hpp"

#include <coil/uring/epoll_backend.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

// io_uring_setup(2), io_uring_enter(2) and io_uring_register(2).

namespace liburing_shim {
namespace {

/// Whether the memory is readable; otherwise the call returns -EFAULT.
bool touches(const void* p, std::size_t size) {
    int pipe_ends[2];
    if (raw(SYS_pipe2, reinterpret_cast<long>(pipe_ends), 0) != 0) {
        return true;
    }
    const long n = raw(SYS_write, pipe_ends[1], reinterpret_cast<long>(p), static_cast<long>(size));
    raw(SYS_close, pipe_ends[0]);
    raw(SYS_close, pipe_ends[1]);
    return n == static_cast<long>(size);
}

/// A ring belongs to the process that created it.
bool usable(const emulated_ring& r) { return r.process == ::getpid(); }

/// Ends a program whose child process would wait on its parent's ring: the parent would in turn
/// wait for the child.
void refuse_to_wait(const emulated_ring& r) {
    if (!usable(r)) {
        static constexpr char message[] = "shim: a child process waits on its parent's ring\n";
        raw(SYS_write, 2, reinterpret_cast<long>(message), sizeof message - 1);
        raw(SYS_kill, 0, SIGKILL);
    }
}

int add_ring(const ring_pointer& r) {
    const int fd = r->k->native_handle();
    {
        const std::scoped_lock lock(all().guard);
        all().rings[fd] = r;
    }
    if (r->pumped) {
        start_pump();
    }
    return fd;
}

long setup_through_ring(unsigned entries, params& p) {
    auto r = std::make_shared<emulated_ring>();
    auto k = std::make_unique<through_ring>();
    r->through = k.get();
    r->k = std::move(k);
    const std::uint32_t flags = p.flags;
    inside = true;
    const int error = r->k->setup(entries, p, r->memory);
    inside = false;
    p.flags = flags;
    if (error != 0) {
        return error;
    }
    r->setup = p;
    r->polls = (flags & sqpoll) != 0;
    r->pumped = true;
    return add_ring(r);
}

long setup_ring(unsigned entries, params* p) {
    if (!touches(p, sizeof *p)) {
        return -EFAULT;
    }
    everything& a = all();
    if (a.through_rings) {
        return setup_through_ring(entries, *p);
    }
    auto r = std::make_shared<emulated_ring>();
    const std::uint32_t flags = p->flags;
    constexpr std::uint32_t sq_aff = 4;
    constexpr std::uint32_t own_thread = setup::single_issuer | setup::defer_taskrun;
    const bool pinned = (flags & sq_aff) != 0;
    if (pinned &&
        ((flags & sqpoll) == 0 || p->sq_thread_cpu >= std::thread::hardware_concurrency())) {
        return -EINVAL;
    }
    if ((flags & sqpoll) != 0 && (flags & (setup::defer_taskrun | setup::coop_taskrun)) != 0) {
        return -EINVAL;
    }
    r->polls = !a.plain && (flags & sqpoll) != 0;
    if (!a.plain) {
        p->flags &= ~1U; // IOPOLL: no effect on the result
    }
    if (r->polls) {
        p->flags &= ~(sqpoll | sq_aff);
    }
    r->k = make_epoll_backend();
    const int error = r->k->setup(entries, *p, r->memory);
    p->flags = flags;
    if (!a.plain) {
        p->features |= 16U; // CUR_PERSONALITY: everything is done by this process
    }
    if (error != 0) {
        return error;
    }
    r->setup = *p;
    // A single-issuer ring is entered only by its own thread.
    r->pumped = r->polls || (flags & own_thread) == 0;
    return add_ring(r);
}

/// Waits in slices; other threads may enter the ring between them.
long wait_in_turns(emulated_ring& r, unsigned least, unsigned flags, const getevents_arg* given) {
    getevents_arg arg{};
    if (given != nullptr) {
        arg = *given;
    }
    constexpr std::int64_t slice = 2'000'000;
    std::int64_t left = INT64_MAX;
    const auto begin = std::chrono::steady_clock::now();
    constexpr std::uint32_t absolute = 32;
    if (given != nullptr && arg.ts != 0) {
        const auto& ts = *reinterpret_cast<const coil::uring::timespec*>(arg.ts);
        if (ts.tv_sec < 0 || ts.tv_nsec < 0) {
            return -EINVAL;
        }
        left = ts.tv_sec > 1'000'000 ? INT64_MAX / 2 : ts.tv_sec * 1'000'000'000 + ts.tv_nsec;
        if ((flags & absolute) != 0) {
            left -= begin.time_since_epoch().count();
        }
    }
    for (;;) {
        const coil::uring::timespec now_and_then{0, left < slice ? (left > 0 ? left : 0) : slice};
        arg.ts = reinterpret_cast<std::uintptr_t>(&now_and_then);
        const auto start = std::chrono::steady_clock::now();
        int result = 0;
        unsigned unread = 0;
        {
            const my_turn turn(r);
            if (r.closed) {
                return -EBADF;
            }
            result =
                r.k->enter(0, least, (flags & ~absolute) | getevents | ext_arg, &arg, sizeof arg);
            unread = r.unread();
        }
        const bool over =
            std::chrono::steady_clock::now() - start >= std::chrono::nanoseconds(slice);
        if (unread >= least || (result != -ETIME && !(result == 0 && over))) {
            return result;
        }
        if (left != INT64_MAX &&
            std::chrono::steady_clock::now() - begin >= std::chrono::nanoseconds(left)) {
            return unread != 0 ? 0 : -ETIME;
        }
        while (r.wanting != 0) {
            std::this_thread::yield();
        }
    }
}

long enter_ring(emulated_ring& r, unsigned submit, unsigned least, unsigned flags,
                const void* given, std::size_t size) {
    flags &= ~(registered_ring | 2U | 4U); // SQ_WAKEUP, SQ_WAIT
    sigset_t before;
    bool masked = false;
    getevents_arg arg{};
    const void* passed = given;
    const auto mask = [&](std::uint64_t address) {
        if (address == 0) {
            return;
        }
        ::pthread_sigmask(SIG_SETMASK, reinterpret_cast<const sigset_t*>(address), &before);
        masked = true;
    };
    if ((flags & ext_arg) != 0) {
        if (size == sizeof arg && given != nullptr) {
            if (!touches(given, size)) {
                return -EFAULT;
            }
            arg = *static_cast<const getevents_arg*>(given);
            if (arg.ts != 0 && !touches(reinterpret_cast<const void*>(arg.ts), 16)) {
                return -EFAULT;
            }
            mask(arg.sigmask);
            arg.sigmask = 0;
            passed = &arg;
        }
    } else {
        mask(reinterpret_cast<std::uintptr_t>(given));
        passed = nullptr;
        size = 0;
    }
    long result = 0;
    if (r.polls) {
        const my_turn turn(r);
        while (const unsigned published = r.published()) {
            if (r.k->enter(published, 0, 0, nullptr, 0) < 0) {
                break;
            }
        }
        result = submit;
        submit = 0;
    }
    // A slice may be shorter than the minimum wait time.
    const bool whole = r.through != nullptr && arg.min_wait_usec != 0;
    if (!threaded || whole || (flags & getevents) == 0 || least == 0) {
        const my_turn turn(r);
        const int n = r.closed ? -EBADF : r.k->enter(submit, least, flags, passed, size);
        result = result != 0 ? result : n;
    } else {
        long n = 0;
        if (submit != 0) {
            const my_turn turn(r);
            n = r.closed ? -EBADF
                         : r.k->enter(submit, 0, flags & ~(getevents | ext_arg | 32U), nullptr, 0);
        }
        if (n == static_cast<long>(submit)) {
            const long waited =
                wait_in_turns(r, least, flags, static_cast<const getevents_arg*>(passed));
            n = n != 0 ? n : waited;
        }
        result = result != 0 ? result : n;
    }
    if (masked) {
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    return result;
}

constexpr unsigned descriptors = 20;
constexpr unsigned no_descriptors = 21;

struct file_update {
    std::uint32_t offset;
    std::uint32_t resv;
    std::uint64_t data;
};

long register_descriptors(emulated_ring& r, unsigned op, file_update* list, unsigned count) {
    const bool adds = op == descriptors;
    if (count == 0 || count > most_registered) {
        return -EINVAL;
    }
    if (r.through != nullptr) { // descriptors of Linux
        const long n = raw(SYS_io_uring_register, r.k->native_handle(), op,
                           reinterpret_cast<long>(list), count);
        for (long i = 0; i < n; ++i) {
            registered[list[i].offset] = adds ? static_cast<int>(list[i].data) : -1;
        }
        return n;
    }
    unsigned done = 0;
    for (; done < count; ++done) {
        file_update& one = list[done];
        if (one.resv != 0 || (!adds && (one.data != 0 || one.offset >= most_registered))) {
            break;
        }
        unsigned at = one.offset;
        if (adds && at == ~0U) {
            for (at = 0; at < most_registered && registered[at] >= 0;) {
                ++at;
            }
        }
        if (at >= most_registered) {
            return done != 0                   ? static_cast<long>(done)
                   : adds && one.offset == ~0U ? -EBUSY
                                               : -EINVAL;
        }
        if (adds && find(static_cast<int>(one.data)) == nullptr) {
            return done != 0 ? static_cast<long>(done) : -EBADF;
        }
        registered[at] = adds ? static_cast<int>(one.data) : -1;
        one.offset = at;
    }
    return done != 0 ? static_cast<long>(done) : -EINVAL;
}

long register_with(emulated_ring& r, unsigned op, void* arg, unsigned count) {
    constexpr unsigned eventfd = 4;
    constexpr unsigned no_eventfd = 5;
    constexpr unsigned eventfd_async = 7;
    switch (op) {
    case eventfd:
    case eventfd_async:
        if (all().plain) {
            return -EINVAL;
        }
        if (count != 1) {
            return -EINVAL;
        }
        if (r.event >= 0) {
            return -EBUSY;
        }
        r.event = static_cast<int>(raw(SYS_dup, *static_cast<int*>(arg)));
        if (const my_turn turn(r); !r.closed) {
            r.reported = r.cq_tail();
        }
        return r.event < 0 ? -EBADF : 0;
    case no_eventfd:
        if (r.event < 0) {
            return -ENXIO;
        }
        raw(SYS_close, r.event);
        r.event = -1;
        return 0;
    case descriptors:
    case no_descriptors:
        return register_descriptors(r, op, static_cast<file_update*>(arg), count);
    default: {
        const my_turn turn(r);
        return r.closed ? -EBADF : r.k->do_register(static_cast<register_op>(op), arg, count);
    }
    }
}

} // namespace

long ours(long n, const long* a, bool& mine) {
    mine = true;
    if (n == SYS_io_uring_setup) {
        return setup_ring(static_cast<unsigned>(a[0]), reinterpret_cast<params*>(a[1]));
    }
    if (n == SYS_io_uring_enter) {
        const auto flags = static_cast<unsigned>(a[3]);
        if (flags >= 1U << 8) {
            return -EINVAL;
        }
        const ring_pointer r = find(static_cast<unsigned>(a[0]), (flags & registered_ring) != 0);
        if (r != nullptr && (flags & getevents) != 0 && a[2] != 0) {
            refuse_to_wait(*r);
        }
        if (r == nullptr || !usable(*r)) {
            return raw(SYS_fcntl, a[0], 1) < 0 ? -EBADF : -EOPNOTSUPP;
        }
        return enter_ring(*r, static_cast<unsigned>(a[1]), static_cast<unsigned>(a[2]), flags,
                          reinterpret_cast<const void*>(a[4]), static_cast<std::size_t>(a[5]));
    }
    if (n == SYS_io_uring_register) {
        const auto op = static_cast<unsigned>(a[1]);
        if (static_cast<int>(a[0]) == -1) { // a call without a ring
            mine = !all().through_rings;
            return -EINVAL;
        }
        const ring_pointer r = find(static_cast<unsigned>(a[0]), (op & use_registered_ring) != 0);
        if (r == nullptr) {
            return raw(SYS_fcntl, a[0], 1) < 0 ? -EBADF : -EOPNOTSUPP;
        }
        if (!usable(*r)) {
            return -EINVAL; // as Linux says that it has no such operation: programs stop asking
        }
        return register_with(*r, op & ~use_registered_ring, reinterpret_cast<void*>(a[2]),
                             static_cast<unsigned>(a[3]));
    }
    mine = false;
    return 0;
}

} // namespace liburing_shim
