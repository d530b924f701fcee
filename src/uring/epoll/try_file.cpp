#include "attempt.hpp"
#include "epoll_backend_impl.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

// Non-blocking attempts to read and write.

namespace coil::uring::detail {
namespace {

#ifndef RWF_NOWAIT
constexpr int RWF_NOWAIT = 8;
#endif

/// The offset for preadv2(2), where -1 means the current position, as in io_uring.
::off_t offset_of(const epoll_request& r) noexcept {
    if (r.entry.off == ~std::uint64_t{0}) {
        return -1;
    }
    return static_cast<::off_t>(r.entry.off + r.done);
}

bool says_nowait(const epoll_request& r) noexcept {
    return (static_cast<int>(r.entry.rw_flags) & RWF_NOWAIT) != 0;
}

/// Whether -EOPNOTSUPP may refer to the caller's flags, which some files and kernels do not
/// support.
bool has_special_flags(const epoll_request& r) noexcept {
    constexpr std::uint32_t everywhere = // RWF_HIPRI, DSYNC, SYNC, NOWAIT, APPEND, NOAPPEND
        0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20;
    return (r.entry.rw_flags & ~everywhere) != 0;
}

/// Whether the descriptor is a socket on which a message may be empty.
bool keeps_messages(int fd) noexcept {
    int type = SOCK_STREAM;
    ::socklen_t size = sizeof type;
    return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type != SOCK_STREAM;
}

/// Transfers what is possible without waiting. Returns -EAGAIN if nothing is, -EOPNOTSUPP if the
/// descriptor does not support non-blocking transfers.
ssize_t move_now(const epoll_request& r, const rest_of& rest, bool in) noexcept {
    const int flags = static_cast<int>(r.entry.rw_flags) | RWF_NOWAIT;
    const auto move = [&](::off_t offset) {
        return uninterrupted([&] {
            return in ? ::preadv2(r.file, rest.data(), rest.size(), offset, flags)
                      : ::pwritev2(r.file, rest.data(), rest.size(), offset, flags);
        });
    };
    const ::off_t offset = offset_of(r);
    if (!in && rest.bytes() == 0 && offset <= 0 && keeps_messages(r.file)) {
        const ::msghdr empty{}; // pwritev2(2) would send nothing, unlike io_uring
        return uninterrupted([&] { return ::sendmsg(r.file, &empty, MSG_DONTWAIT); });
    }
    const ssize_t n = move(offset);
    if (n != -ESPIPE || offset == -1) {
        return n;
    }
    // As in the kernel, sockets refuse a position, and other files without one ignore it.
    return r.entry.off != 0 && is_socket(r.file) ? n : move(-1);
}

} // namespace

/// Chooses the next step when nothing was transferred.
int epoll_backend::after_refusal(epoll_request& r, int error, bool in) noexcept {
    const int again = in ? again_in : again_out;
    const bool may_be_flags = error == -EOPNOTSUPP && has_special_flags(r);
    if (says_nowait(r) || (error != -EAGAIN && error != -EOPNOTSUPP) ||
        (may_be_flags && !is_file(*r.on))) {
        return failed(r, error);
    }
    if (is_file(*r.on)) {
        if (error == -EOPNOTSUPP && !may_be_flags && r.on->what == state::kind::file) {
            r.on->what = state::kind::no_nowait_file;
        }
        return would_block(r, by_worker);
    }
    if (error == -EAGAIN && in && was_shut_down(*r.on)) {
        return 0;
    }
    if (error == -EAGAIN || !is_ready(r.file, in ? POLLIN : POLLOUT)) {
        return would_block(r, again);
    }
    const int flags = ::fcntl(r.file, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) == 0) {
        return would_block(r, by_unbounded_worker); // another reader or writer may make it block
    }
    const rest_of rest(r);
    const ssize_t n = uninterrupted([&] {
        return in ? ::readv(r.file, rest.data(), rest.size())
                  : ::writev(r.file, rest.data(), rest.size());
    });
    return n == -EAGAIN ? would_block(r, again) : static_cast<int>(n);
}

/// Whether a non-blocking attempt is impossible: with O_DIRECT the attempt itself waits for the
/// device.
bool epoll_backend::is_for_device(const epoll_request& r) noexcept {
    state& s = *r.on;
    if (s.what == state::kind::unknown && offset_of(r) != -1) {
        learn(s);
    }
    const auto lacks_nowait = [&s] {
        return s.what == state::kind::direct_file || s.what == state::kind::no_nowait_file;
    };
    return lacks_nowait() && is_file(s) && lacks_nowait();
}

/// A short transfer on a file means that the rest is not in the page cache or does not exist. A
/// worker makes the blocking call that finds out which.
bool epoll_backend::is_unfinished(epoll_request& r, ssize_t n, std::size_t asked) noexcept {
    if (n <= 0 || static_cast<std::size_t>(n) >= asked || says_nowait(r) || !is_file(*r.on)) {
        return false;
    }
    r.done += static_cast<std::uint32_t>(n);
    return true;
}

int epoll_backend::try_read(epoll_request& r) noexcept {
    if (is_for_device(r)) {
        return by_worker;
    }
    if (r.multishot() && is_file(*r.on)) {
        return is_file_open(r.file) ? -EBADFD : -EBADF;
    }
    for (int parts = 0;; ++parts) {
        if (const int error = select(r); error != 0) {
            return is_file_open(r.file) ? error : -EBADF;
        }
        const rest_of rest(r);
        ssize_t n = move_now(r, rest, true);
        if (n < 0) {
            const int tried = after_refusal(r, static_cast<int>(n), true);
            if (tried < 0) {
                constexpr int last_error = -4095;
                if (tried >= last_error && r.on->is_known_file()) {
                    hold_selected(r); // as on Linux, a failed read of a file uses up its buffer
                }
                return tried;
            }
            n = tried;
        }
        if (is_unfinished(r, n, rest.bytes())) {
            return by_worker;
        }
        const int result = static_cast<int>(n) + static_cast<int>(r.done);
        if (!r.multishot() || n == 0) {
            return result;
        }
        if (const int tried = post_part(r, result, parts, false); tried != next_part) {
            return tried;
        }
    }
}

int epoll_backend::try_write(epoll_request& r) noexcept {
    if (is_for_device(r)) {
        return by_worker;
    }
    const rest_of rest(r);
    const ssize_t n = move_now(r, rest, false);
    if (n < 0) {
        return after_refusal(r, static_cast<int>(n), false);
    }
    if (is_unfinished(r, n, rest.bytes())) {
        return by_worker;
    }
    return static_cast<int>(n) + static_cast<int>(r.done);
}

} // namespace coil::uring::detail
