#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/kernel.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace coil::uring {

/// What a ring's kernel can do, asked at run time. A plain value.
class probe_result {
public:
    /// Nothing is supported.
    constexpr probe_result() noexcept = default;

    /// From io_uring_register(2)'s own answer.
    explicit constexpr probe_result(const probe& p) noexcept {
        for (unsigned i = 0; i < p.ops_len; ++i)
            if ((p.ops[i].flags & op_supported) != 0)
                add(static_cast<opcode>(p.ops[i].op));
    }

    constexpr void add(opcode op) noexcept { word(op) |= bit(op); }
    constexpr void remove(opcode op) noexcept { word(op) &= ~bit(op); }

    constexpr bool supports(opcode op) const noexcept {
        return (bits_[static_cast<unsigned>(op) / 64] & bit(op)) != 0;
    }

    /// How many opcodes are supported.
    constexpr unsigned count() const noexcept {
        unsigned n = 0;
        for (unsigned i = 0; i < 256; ++i)
            n += supports(static_cast<opcode>(i)) ? 1 : 0;
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

/// Asks a kernel whose ring is set up (IORING_REGISTER_PROBE, Linux 5.6). One call; nothing is
/// supported where the kernel does not answer.
probe_result probe_opcodes(kernel& k) noexcept;

/// Whether io_uring can be used by this process, now.
struct availability {
    bool usable = false;
    int error = 0;      // the errno that stood in the way, or 0
    std::string reason; // one sentence, for people; never empty
    std::uint32_t features = 0;
    std::uint32_t setup_flags = 0; // which of the flags a ring asks for by default were granted
    probe_result opcodes;

    explicit operator bool() const noexcept { return usable; }
};

/// Tries it: sets up a small ring, sends one entry through it and closes it. Any thread; costs some
/// ten microseconds, so keep the answer. Never throws but for want of memory.
availability available();

/// One sentence for the errno with which io_uring_setup(2) refused: what it means and what to do.
/// Looks at this system's settings to say which of the possible reasons it is.
std::string explain_setup_error(int error);

} // namespace coil::uring
