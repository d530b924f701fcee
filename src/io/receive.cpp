#include <coil/core/buffer.hpp>
#include <coil/io/receive.hpp>
#include <coil/uring/prep.hpp>

#include <algorithm>
#include <cstring>

namespace coil {

received_message::received_message(io_result result, buffer_lease lease,
                                   const ::msghdr& layout) noexcept
    : lease_(std::move(lease)), result_(result) {
    if (!lease_) {
        return;
    }
    // Layout: header, name, control data, payload. The header may be unaligned.
    uring::recvmsg_out header{};
    const std::span<std::byte> all = lease_.bytes();
    const std::size_t front = sizeof header + layout.msg_namelen + layout.msg_controllen;
    if (all.size() < front) {
        result_ = io_result(-EFAULT); // no kernel returns so few bytes
        lease_.reset();
        return;
    }
    std::memcpy(&header, all.data(), sizeof header);
    name_ = all.subspan(sizeof header, std::min<std::size_t>(header.namelen, layout.msg_namelen));
    control_ = all.subspan(sizeof header + layout.msg_namelen,
                           std::min<std::size_t>(header.controllen, layout.msg_controllen));
    payload_ = all.subspan(front);
    flags_ = static_cast<int>(header.flags);
    result_ = io_result(static_cast<int>(payload_.size()));
}

received_buffer detail::byte_source::received(byte_source* self,
                                              const multishot_result& r) noexcept {
    return {io_result(r.value), r.has_buffer() ? self->take_lease(r) : buffer_lease{}};
}

namespace io {

uring::sqe recv_stream::group_request(unsigned group) noexcept {
    return uring::prep::recv_multishot(fd().number(), flags_, group);
}

uring::sqe recv_stream::own_request(std::byte* data, std::size_t size) noexcept {
    return uring::prep::recv(fd().number(), data, size, flags_);
}

uring::sqe read_stream::group_request(unsigned group) noexcept {
    if (owner_loop().ring().supports(uring::opcode::read_multishot)) {
        return uring::prep::read_multishot(fd().number(), 0, uring::prep::current_position, group);
    }
    uring::sqe once = uring::prep::read(fd().number(), nullptr, detail::max_transfer,
                                        uring::prep::current_position);
    once.flags |= uring::sqe_flag::buffer_select;
    once.buf_group = static_cast<std::uint16_t>(group);
    return once;
}

uring::sqe read_stream::own_request(std::byte* data, std::size_t size) noexcept {
    return uring::prep::read(fd().number(), data, static_cast<unsigned>(size),
                             uring::prep::current_position);
}

} // namespace io

namespace detail {

received_message message_source::received(message_source* self,
                                          const multishot_result& r) noexcept {
    return r.has_buffer() ? received_message(io_result(r.value), self->take_lease(r), self->layout_)
                          : received_message(io_result(r.value), {}, {});
}

uring::sqe message_source::group_request(unsigned group) noexcept {
    return uring::prep::recvmsg_multishot(fd().number(), &layout_, flags_, group);
}

uring::sqe message_source::own_request(std::byte* data, std::size_t size) noexcept {
    std::byte* const name = data + sizeof(uring::recvmsg_out);
    std::byte* const control = name + layout_.msg_namelen;
    const std::size_t front = sizeof(uring::recvmsg_out) + layout_.msg_namelen +
                              static_cast<std::size_t>(layout_.msg_controllen);
    // A buffer too small for its front part causes -EFAULT, as when the kernel selects it.
    part_ = {front <= size ? data + front : nullptr, front <= size ? size - front : 1};
    message_ = layout_;
    message_.msg_name = front <= size && layout_.msg_namelen > 0 ? name : nullptr;
    message_.msg_control = front <= size && layout_.msg_controllen > 0 ? control : nullptr;
    message_.msg_iov = &part_;
    message_.msg_iovlen = 1;
    return uring::prep::recvmsg(fd().number(), &message_, flags_);
}

int message_source::own_filled(std::byte* data, int result) noexcept {
    uring::recvmsg_out header{};
    header.namelen = message_.msg_namelen;
    header.controllen = static_cast<std::uint32_t>(message_.msg_controllen);
    header.payloadlen = static_cast<std::uint32_t>(result);
    header.flags = static_cast<std::uint32_t>(message_.msg_flags);
    std::memcpy(data, &header, sizeof header);
    // With MSG_TRUNC the result is the message's length, which may exceed the buffer's.
    const int here = static_cast<int>(std::min(static_cast<std::size_t>(result), part_.iov_len));
    return static_cast<int>(sizeof header + layout_.msg_namelen + layout_.msg_controllen) + here;
}

} // namespace detail

} // namespace coil
