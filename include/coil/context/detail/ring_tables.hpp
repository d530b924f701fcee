#pragma once

#include <coil/base/owned.hpp>
#include <coil/uring/registered_buffers.hpp>
#include <coil/uring/registered_files.hpp>
#include <coil/uring/ring.hpp>

#include <cstdint>
#include <span>

#include <sys/uio.h>

namespace coil::detail {

/// A ring's tables of files and of buffers, each created on first use. Owner thread only.
class ring_tables {
public:
    /// Slots below this one are for numbers chosen by programs; the kernel allocates the others.
    static constexpr unsigned chosen_files = 64;
    /// Matches any table, where a files_number() is expected.
    static constexpr std::uint32_t any_files = 1;

    /// Creates the table of files unless it exists: returns 0 or -errno. It has at most `slots`
    /// slots besides those for chosen numbers, fewer if RLIMIT_NOFILE requires it.
    int use_files(uring::ring& ring, unsigned slots) noexcept;
    void close_file(int slot) noexcept;
    /// Identifies the table within the process (among the last 2^32); 0: none.
    [[nodiscard]] std::uint32_t files_number() const noexcept { return files_number_; }

    /// Registers memory in adjacent slots of a table of `slots`. Returns the first one, or -errno
    /// (-ENFILE: not enough adjacent free slots).
    int add_buffers(uring::ring& ring, unsigned slots, std::span<const ::iovec> memory) noexcept;
    void remove_buffers(unsigned first, unsigned count) noexcept;

    /// Called before the ring is closed.
    void close() noexcept;

private:
    [[nodiscard]] int find_free(unsigned count) const noexcept;

    uring::registered_files files_;
    std::uint32_t files_number_ = 0;
    uring::registered_buffers buffers_;
    owned<bool[]> taken_; // for each slot of buffers_: whether it is in use
};

} // namespace coil::detail
