#pragma once

#include "descriptors.hpp"

#include <coil/uring/emulated_request.hpp>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <span>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

// Helpers shared by the attempts of several kinds of operations.

namespace coil::uring::detail {

/// The part of a request's data that has not been transferred yet.
class rest_of {
public:
    explicit rest_of(const emulated_request& r) noexcept : parts_(r.data()) {
        std::size_t done = r.done;
        if (done == 0) {
            return;
        }
        std::size_t n = 0;
        for (const ::iovec& part : r.data()) {
            if (done >= part.iov_len) {
                done -= part.iov_len;
                continue;
            }
            copy_[n++] = {static_cast<std::byte*>(part.iov_base) + done, part.iov_len - done};
            done = 0;
        }
        parts_ = {copy_.data(), n};
    }
    rest_of(const rest_of&) = delete;
    rest_of& operator=(const rest_of&) = delete;

    ::iovec* data() const noexcept { return const_cast<::iovec*>(parts_.data()); }
    int size() const noexcept { return static_cast<int>(parts_.size()); }
    std::size_t bytes() const noexcept {
        std::size_t n = 0;
        for (const ::iovec& part : parts_) {
            n += part.iov_len;
        }
        return n;
    }

private:
    std::span<const ::iovec> parts_;
    std::array<::iovec, IOV_MAX> copy_; // NOLINT(cppcoreguidelines-pro-type-member-init): by need
};

inline bool is_ready(int fd, short events) noexcept {
    ::pollfd p{fd, events, 0};
    return ::poll(&p, 1, 0) != 0;
}

inline bool is_socket(int fd) noexcept {
    struct ::stat status{};
    return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

/// Whether a datagram socket with nothing to receive was shut down: a blocking call returns 0, but
/// a non-blocking one fails with EAGAIN. The check is needed only after epoll has reported an end,
/// which it also does if a request begins to wait after the shutdown.
inline bool was_shut_down(const descriptor_state& s) noexcept {
    return s.may_end_early && s.what == descriptor_state::kind::datagram &&
           is_ready(s.fd, POLLRDHUP);
}

/// Whether the descriptor is open and not just a path (O_PATH), which io_uring does not accept.
inline bool is_file_open(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_PATH) == 0;
}

/// The result of a request that failed with `error` before its file was looked up: a file that is
/// missing or is no socket takes precedence.
inline int unless_no_socket(int fd, int error) noexcept {
    struct ::stat status{};
    if (::fstat(fd, &status) != 0) {
        return -EBADF;
    }
    return S_ISSOCK(status.st_mode) ? error : -ENOTSOCK;
}

/// Repeats a system call that a signal interrupted; returns its result, or -errno.
template <class F>
auto uninterrupted(F&& call) noexcept {
    for (;;) {
        const auto result = call();
        if (result >= 0) {
            return result;
        }
        if (errno != EINTR) {
            return static_cast<decltype(call())>(-errno);
        }
    }
}

} // namespace coil::uring::detail
