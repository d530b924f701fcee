#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/backend.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace coil::uring {

/// The opcodes that a ring's kernel supports, determined at run time. A plain value.
class probe_result {
public:
    /// No opcode is supported.
    constexpr probe_result() noexcept = default;

    /// From the result of io_uring_register(2).
    explicit constexpr probe_result(const probe& p) noexcept {
        for (unsigned i = 0; i < p.ops_len; ++i) {
            if ((p.ops[i].flags & op_supported) != 0) {
                add(static_cast<opcode>(p.ops[i].op));
            }
        }
    }

    constexpr void add(opcode op) noexcept { word(op) |= bit(op); }
    constexpr void remove(opcode op) noexcept { word(op) &= ~bit(op); }

    constexpr bool supports(opcode op) const noexcept {
        return (bits_[static_cast<unsigned>(op) / 64] & bit(op)) != 0;
    }

    /// The number of supported opcodes.
    constexpr unsigned count() const noexcept {
        unsigned n = 0;
        for (unsigned i = 0; i < 256; ++i) {
            n += supports(static_cast<opcode>(i)) ? 1 : 0;
        }
        return n;
    }

    friend constexpr bool operator==(const probe_result&, const probe_result&) noexcept = default;

private:
    static constexpr std::uint64_t bit(opcode op) noexcept {
        return std::uint64_t{1} << (static_cast<unsigned>(op) % 64);
    }
    constexpr std::uint64_t& word(opcode op) noexcept {
        return bits_[static_cast<unsigned>(op) / 64];
    }

    std::array<std::uint64_t, 4> bits_{};
};

/// Probes a backend whose ring is set up (IORING_REGISTER_PROBE, Linux 5.6), in one call. If the
/// probe fails, no opcode is reported as supported.
probe_result probe_opcodes(backend& k) noexcept;

/// What a kernel implements, whatever this process may use of it. A plain value. A number that the
/// kernel does not report is 0.
struct kernel_capabilities {
    /// The number of opcodes that the kernel knows. It may be built without some of these, so
    /// probe_opcodes() decides whether an opcode is supported.
    std::uint32_t request_opcodes = 0;
    std::uint32_t register_opcodes = 0; // the number of register_op::* that it knows
    std::uint64_t features = 0;         // feature::*
    std::uint64_t setup_flags = 0;      // setup::*
    std::uint64_t enter_flags = 0;      // enter_flag::*
    std::uint64_t sqe_flags = 0;        // sqe_flag::*

    friend constexpr bool operator==(const kernel_capabilities&,
                                     const kernel_capabilities&) noexcept = default;
};

/// Queries a backend's kernel (IORING_REGISTER_QUERY, Linux 6.18), in one call. The backend need
/// not be set up. Empty if the kernel has no such query or does not permit it, and for backends
/// that are not a kernel.
std::optional<kernel_capabilities> query_kernel(backend& k) noexcept;

/// Whether this process can use io_uring now.
struct availability {
    bool usable = false;
    int error = 0;      // the errno of the failure, or 0
    std::string reason; // one human-readable sentence; never empty
    std::uint32_t features = 0;
    std::uint32_t setup_flags = 0; // the flags granted of those that a ring requests by default
    probe_result opcodes;
    std::optional<kernel_capabilities> kernel; // if usable, and if the kernel can be queried

    explicit operator bool() const noexcept { return usable; }
};

/// Sets up a small ring, sends one entry through it and closes it. Any thread. Takes on the order
/// of ten microseconds, so cache the result. Throws only std::bad_alloc.
availability available();

/// One sentence for an errno of io_uring_setup(2): what it means and what to do. Reads this
/// system's settings to determine which of the possible reasons applies.
std::string explain_setup_error(int error);

} // namespace coil::uring
