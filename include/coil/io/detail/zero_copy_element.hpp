#pragma once

#include <coil/context/operation.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>

namespace coil::detail {

/// A call whose completion the kernel does not allow to be suppressed, wherever it is in a chain.
class zero_copy_element : public io_element, zero_copy_node {
public:
    static constexpr bool needs_result = true;

    using io_element::io_element;

    sqe_slot& arm() noexcept {
        event_loop& loop = required_loop();
        const auto call = static_cast<uring::opcode>(entry_.request.opcode);
        if (!loop.ring().supports(call)) [[unlikely]] {
            copy_instead();
        } else {
            loop.zero_copies().insert(*this, entry_);
        }
        return entry_;
    }

private:
    void copy_instead() noexcept;
};

/// Returns `flags` if callers may use them; otherwise a flag that the kernel refuses, because the
/// remaining flags change the meaning of the memory arguments.
constexpr std::uint16_t zero_copy_flags(unsigned flags) noexcept {
    constexpr unsigned taken =
        uring::recvsend_flag::poll_first | uring::recvsend_flag::zc_report_usage;
    constexpr std::uint16_t refused = 1U << 15;
    return (flags & ~taken) == 0 ? static_cast<std::uint16_t>(flags) : refused;
}

} // namespace coil::detail
