#pragma once

#include <coil/context/detail/perform.hpp>
#include <coil/context/operation.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdint>
#include <limits>

#include <sys/socket.h>

namespace coil::detail {

/// A command to a socket, with the system call as a fallback if the ring lacks it.
class socket_option_element : public io_element {
public:
    explicit socket_option_element(const prepared_sqe& request) noexcept : io_element(request) {
        entry_.flags = not_asked;
    }

    io_result result() noexcept {
        if (entry_.result == -EOPNOTSUPP && entry_.flags != not_asked) {
            entry_.result = perform(entry_.call());
        }
        return io_element::result();
    }

private:
    /// A flag that no completion carries: the request has not reached the kernel.
    static constexpr std::uint32_t not_asked = uring::cqe_flag::skip;
};

/// getsockopt(2), whose length is both argument and result: the ring takes it by value and returns
/// it.
class get_option_element : public socket_option_element {
public:
    static constexpr bool needs_result = true;

    get_option_element(io::descriptor fd, int level, int name, void* value,
                       ::socklen_t* length) noexcept
        : socket_option_element(
              request_on(fd, uring::prep::getsockopt(fd.number(), level, name, value, 0))),
          length_(length) {}

    sqe_slot& arm() noexcept {
        if (length_ != nullptr) {
            entry_.request.optlen = *length_;
        } else { // EFAULT, like the system call
            entry_.request.optval = 0;
            entry_.request.optlen = std::numeric_limits<int>::max();
        }
        return entry_;
    }
    io_result result() noexcept {
        const io_result length = socket_option_element::result();
        drop();
        return length < 0 ? length : io_result(0);
    }
    void drop() noexcept {
        if (entry_.is_completed() && entry_.result >= 0 && length_ != nullptr) {
            *length_ = static_cast<::socklen_t>(entry_.result);
        }
    }

private:
    ::socklen_t* length_;
};

} // namespace coil::detail
