// Runs a liburing program on the epoll backend or, with COIL_SHIM_RING=1, through
// coil::uring::ring: loaded with LD_PRELOAD, it intercepts the io_uring system calls and the
// mappings of a ring's memory. The ring's descriptor is the backend's native_handle().
//
// A backend guarantees less than a Linux ring: one thread at a time, completions only in enter(),
// no eventfd, no submission thread. coil::uring::ring handles this for its users; for liburing
// programs this file does: calls from several threads are serialized, and a pump thread enters
// rings that the program does not enter. COIL_SHIM_PLAIN=1 disables the pump, SQPOLL and eventfds.
// For a uring::ring the pump copies completions to programs that only peek.

#include "rings.hpp"

#include <cerrno>
#include <cstdarg>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

using namespace liburing_shim;

namespace {

template <class F>
F* next(const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

} // namespace

extern "C" {

long syscall(long n, ...) {
    std::va_list list;
    va_start(list, n);
    long a[6];
    for (long& one : a) {
        one = va_arg(list, long);
    }
    va_end(list);
    bool mine = false;
    long result = inside ? 0 : ours(n, a, mine);
    if (!mine) {
        result = raw(n, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    if (result < 0 && result > -4096) {
        errno = static_cast<int>(-result);
        return -1;
    }
    return result;
}

void* mmap(void* at, std::size_t size, int prot, int flags, int fd, ::off_t offset) noexcept {
    if (!inside && fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
        if (const ring_pointer r = find(fd); r != nullptr) {
            void* found = nullptr;
            if (offset == mmap_offset::sq_ring) {
                found = r->memory.sq;
            } else if (offset == mmap_offset::cq_ring) {
                found = r->memory.cq;
            } else if (offset == mmap_offset::sqes) {
                found = r->memory.sqes;
            } else if (r->through == nullptr) {
                errno = EINVAL;
                return MAP_FAILED;
            }
            if (found != nullptr) {
                const std::scoped_lock lock(all().guard);
                all().mappings[found] = fd;
                return found;
            }
        }
    }
    const long result =
        raw(SYS_mmap, reinterpret_cast<long>(at), static_cast<long>(size), prot, flags, fd, offset);
    if (result < 0 && result > -4096) {
        errno = static_cast<int>(-result);
        return MAP_FAILED;
    }
    return reinterpret_cast<void*>(result);
}
void* mmap64(void* at, std::size_t size, int prot, int flags, int fd, ::off_t offset) noexcept {
    return mmap(at, size, prot, flags, fd, offset);
}

int munmap(void* at, std::size_t size) noexcept {
    if (!inside) {
        everything& a = all();
        const std::scoped_lock lock(a.guard);
        if (a.mappings.erase(at) != 0) {
            return 0;
        }
    }
    const long result = raw(SYS_munmap, reinterpret_cast<long>(at), static_cast<long>(size));
    errno = result < 0 ? static_cast<int>(-result) : errno;
    return result < 0 ? -1 : 0;
}

int madvise(void* at, std::size_t size, int advice) noexcept {
    if (!inside) {
        everything& a = all();
        const std::scoped_lock lock(a.guard);
        if (a.mappings.contains(at)) {
            return 0;
        }
    }
    const long result =
        raw(SYS_madvise, reinterpret_cast<long>(at), static_cast<long>(size), advice);
    errno = result < 0 ? static_cast<int>(-result) : errno;
    return result < 0 ? -1 : 0;
}

int close(int fd) {
    if (!inside && find(fd) != nullptr) {
        if (all().process == ::getpid()) {
            close_ring(fd);
            return 0;
        }
    }
    const long result = raw(SYS_close, fd);
    errno = result < 0 ? static_cast<int>(-result) : errno;
    return result < 0 ? -1 : 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* arg) noexcept {
    if (!inside) {
        threaded = true;
    }
    static auto* const real =
        next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
    return real(thread, attributes, run, arg);
}

} // extern "C"
