#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/prep.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::detail {

/// sendto(2). io_uring lacks it before Linux 6.1; older kernels use sendmsg instead. (They are
/// recognised by the lack of sendmsg_zc, which appeared in the same release.)
class send_to_element : public io_element {
public:
    send_to_element(io::descriptor fd, const_buffer buf, int flags, const ::sockaddr* address,
                    ::socklen_t length) noexcept
        : io_element(
              request_on(fd, uring::prep::sendto(fd.number(), buf.data(), transfer_size(buf.size()),
                                                 flags, address, length))) {}

    sqe_slot& arm() noexcept {
        if (entry_.request.addr2 != 0 &&
            !required_loop().ring().supports(uring::opcode::sendmsg_zc)) [[unlikely]] {
            send_as_message();
        }
        return entry_;
    }

private:
    void send_as_message() noexcept {
        const uring::sqe call = entry_.request;
        part_ = {reinterpret_cast<void*>(call.addr), call.len};
        message_.msg_name = reinterpret_cast<void*>(call.addr2);
        // sendmsg(2) truncates an address length that sendto(2) rejects. Both reject a negative
        // length, which therefore replaces one that is too large.
        message_.msg_namelen =
            call.addr_len <= sizeof(::sockaddr_storage) ? call.addr_len : ~::socklen_t{0};
        message_.msg_iov = &part_;
        message_.msg_iovlen = 1;
        entry_.set_call(uring::prep::sendmsg(call.fd, &message_, static_cast<int>(call.msg_flags)));
        entry_.request.flags = call.flags;
    }

    ::msghdr message_{};
    ::iovec part_{};
};

/// recvfrom(2), implemented by recvmsg, because io_uring has no opcode for it.
class receive_from_element : public io_element {
public:
    static constexpr bool needs_result = true;

    receive_from_element(io::descriptor fd, mutable_buffer buf, int flags, ::sockaddr* address,
                         ::socklen_t* length) noexcept
        : io_element(request_on(fd, uring::prep::recvmsg(fd.number(), nullptr, flags))),
          part_{buf.data(), buf.size()}, address_(address), length_(length) {}

    sqe_slot& arm() noexcept {
        message_.msg_iov = &part_;
        message_.msg_iovlen = 1;
        if (address_ != nullptr && length_ != nullptr) {
            message_.msg_name = address_;
            message_.msg_namelen = *length_;
        }
        entry_.request.addr = reinterpret_cast<std::uintptr_t>(&message_);
        return entry_;
    }
    io_result result() noexcept {
        drop();
        return io_element::result();
    }
    void drop() noexcept {
        if (entry_.is_completed() && entry_.result >= 0 && address_ != nullptr &&
            length_ != nullptr) {
            *length_ = message_.msg_namelen;
        }
    }

private:
    ::msghdr message_{};
    ::iovec part_;
    ::sockaddr* address_;
    ::socklen_t* length_;
};

} // namespace coil::detail
