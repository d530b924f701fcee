#include <coil/io/zero_copy.hpp>

#include <cstdint>

namespace coil::detail {

/// The request becomes the call that every kernel has.
void zero_copy_element::copy_instead() noexcept {
    uring::sqe& request = entry_.request;
    const bool is_message = request.opcode == static_cast<std::uint8_t>(uring::opcode::sendmsg_zc);
    request.opcode =
        static_cast<std::uint8_t>(is_message ? uring::opcode::sendmsg : uring::opcode::send);
    request.ioprio = 0; // a registered buffer is memory like any other
    request.buf_index = 0;
}

} // namespace coil::detail
