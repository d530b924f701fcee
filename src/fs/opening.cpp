#include "opening.hpp"

#include "syscalls.hpp"

#include <coil/uring/prep.hpp>

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::fs::detail::sys {

namespace {

#ifdef SYS_openat2
constexpr long openat2_number = SYS_openat2;
#else
constexpr long openat2_number = 437;
#endif

/// Whether an earlier call has shown that this process cannot use openat2(2).
constinit std::atomic<bool> openat2_is_missing{false};

int openat(int directory, const char* name, int flags, ::mode_t mode) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::openat(directory, name, flags, mode));
    }
    return checked(::openat(directory, name, flags, mode));
}

int openat2(int directory, const char* name, ::open_how how) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::openat2(directory, name, &how, sizeof how));
    }
    return checked(::syscall(openat2_number, directory, name, &how, sizeof how));
}

/// Whether a call with O_NOFOLLOW cannot leave the directory: the path is a single component.
bool is_one_component(const char* name) noexcept {
    return std::strchr(name, '/') == nullptr && std::strcmp(name, "..") != 0;
}

bool must_stay_inside(int flags) noexcept {
    return (flags & O_NOFOLLOW) != 0 || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

} // namespace

int open_path(const char* path, int flags, ::mode_t mode) noexcept {
    return openat(AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

int open_entry(int directory, const char* name, int flags, ::mode_t mode) noexcept {
    if (directory == AT_FDCWD || !must_stay_inside(flags)) {
        return openat(directory, name, flags | O_CLOEXEC, mode);
    }
    const bool asks = !openat2_is_missing.load(std::memory_order_relaxed);
    if (asks) {
        const int fd = openat2(directory, name, how_to_open_entry(flags, mode));
        if (fd == -EXDEV) { // the lookup has left the directory, or the entry has
            return is_one_component(name) ? -ENOENT : -ELOOP;
        }
        // EPERM may be an error of the file, or that of a seccomp filter.
        if (fd != -ENOSYS && fd != -EPERM && fd != -EOPNOTSUPP) {
            return fd;
        }
    }
    if (!is_one_component(name)) {
        return -ELOOP;
    }
    const int fd = openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    if (asks && fd >= 0 && !is_in_world()) {
        openat2_is_missing.store(true, std::memory_order_relaxed);
    }
    return fd;
}

int open_parent(int directory, int flags) noexcept {
    return openat(directory, "..", flags | O_DIRECTORY | O_CLOEXEC, 0);
}

::open_how how_to_open_entry(int flags, ::mode_t mode) noexcept {
    ::open_how how{};
    how.flags = static_cast<unsigned>(flags | O_NOFOLLOW | O_CLOEXEC);
    how.mode = (flags & O_CREAT) != 0 ? mode : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return how;
}

} // namespace coil::fs::detail::sys
