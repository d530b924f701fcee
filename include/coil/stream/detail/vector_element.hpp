#pragma once

#include <coil/context/detail/io_element.hpp>
#include <coil/core/buffer.hpp>
#include <coil/uring/prep.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::detail {

/// The maximum number of buffers that one call transfers; longer lists are transferred in part.
inline constexpr std::size_t most_parts = 16;

/// The non-empty buffers of a call, as an iovec array. Refers to their memory.
class part_list {
public:
    template <class Buffer>
    explicit part_list(const std::span<const Buffer>& buffers) noexcept {
        for (const Buffer& b : buffers) {
            if (count_ == most_parts) {
                break;
            }
            if (b.size() > 0) {
                parts_[count_++] = {const_cast<void*>(static_cast<const void*>(b.data())),
                                    b.size()};
            }
        }
    }

    [[nodiscard]] ::iovec* data() noexcept { return parts_.data(); }
    [[nodiscard]] unsigned count() const noexcept { return count_; }
    /// The sum of the sizes.
    [[nodiscard]] std::size_t bytes() const noexcept {
        std::size_t sum = 0;
        for (const ::iovec& part : parts_) {
            sum += part.iov_len;
        }
        return sum;
    }

private:
    std::array<::iovec, most_parts> parts_{};
    unsigned count_ = 0;
};

// Each element has one constructor template for both kinds of buffers, which takes the span by
// reference: to copy or convert a span, the compiler would have to instantiate the range concepts
// of its constructors, which is slow.
template <class Buffer>
concept listed_buffer = std::same_as<Buffer, mutable_buffer> || std::same_as<Buffer, const_buffer>;

/// readv and writev at the current position, with a copy of the list.
class file_vector_element : public io_element {
public:
    template <listed_buffer Buffer>
    file_vector_element(int fd, const std::span<const Buffer>& list) noexcept
        : io_element(std::same_as<Buffer, mutable_buffer>
                         ? uring::prep::readv(fd, nullptr, 0, current)
                         : uring::prep::writev(fd, nullptr, 0, current)),
          parts_(list) {}

    sqe_slot& arm() noexcept {
        entry_.request.addr = reinterpret_cast<std::uintptr_t>(parts_.data());
        entry_.request.len = parts_.count();
        return entry_;
    }

private:
    static constexpr std::uint64_t current = uring::prep::current_position;

    part_list parts_;
};

/// recvmsg and sendmsg without an address, with a copy of the list.
class socket_vector_element : public io_element {
public:
    template <listed_buffer Buffer>
    socket_vector_element(int fd, const std::span<const Buffer>& list) noexcept
        : io_element(std::same_as<Buffer, mutable_buffer>
                         ? uring::prep::recvmsg(fd, nullptr, 0)
                         : uring::prep::sendmsg(fd, nullptr, MSG_NOSIGNAL)),
          parts_(list) {}

    sqe_slot& arm() noexcept {
        message_.msg_iov = parts_.data();
        message_.msg_iovlen = parts_.count();
        entry_.request.addr = reinterpret_cast<std::uintptr_t>(&message_);
        return entry_;
    }

private:
    part_list parts_;
    ::msghdr message_{};
};

} // namespace coil::detail
