#include <coil/io/zero_copy.hpp>

#include <cstdint>

namespace coil::detail {

/// Turns the request into the copying call, which every kernel has.
void zero_copy_element::copy_instead() noexcept {
    uring::sqe& request = entry_.request;
    const bool is_message = request.opcode == static_cast<std::uint8_t>(uring::opcode::sendmsg_zc);
    request.opcode =
        static_cast<std::uint8_t>(is_message ? uring::opcode::sendmsg : uring::opcode::send);
    // A registered buffer is ordinary memory. Unknown flags are kept, so that the kernel refuses
    // them.
    constexpr std::uint16_t known = uring::recvsend_flag::fixed_buf |
                                    uring::recvsend_flag::poll_first |
                                    uring::recvsend_flag::zc_report_usage;
    request.ioprio &= static_cast<std::uint16_t>(~known);
    request.buf_index = 0;
}

} // namespace coil::detail
