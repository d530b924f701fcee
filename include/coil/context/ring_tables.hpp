#pragma once

#include <coil/uring/registered_buffers.hpp>
#include <coil/uring/registered_files.hpp>
#include <coil/uring/ring.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include <sys/uio.h>

namespace coil::detail {

/// A ring's tables of files and of buffers. Each is made when it is first needed. Owner thread.
class ring_tables {
public:
    /// Slots below this one are for numbers that programs choose; the kernel takes the others.
    static constexpr unsigned chosen_files = 64;
    /// What is no table's files_number(): whichever table there is.
    static constexpr std::uint32_t any_files = 1;

    /// Makes the table of files unless there is one: 0 or −errno. It has at most `slots` slots
    /// besides those for chosen numbers, fewer where RLIMIT_NOFILE says so.
    int use_files(uring::ring& ring, unsigned slots) noexcept;
    void close_file(int slot) noexcept;
    /// Which table of the process (of the last 2^32 or so); 0: none.
    [[nodiscard]] std::uint32_t files_number() const noexcept { return files_number_; }

    /// Registers memory in neighbouring slots of a table of `slots`: the first one, or −errno
    /// (−ENFILE: no such row of free ones).
    int add_buffers(uring::ring& ring, unsigned slots, std::span<const ::iovec> memory) noexcept;
    void remove_buffers(unsigned first, unsigned count) noexcept;

    /// Before the ring is closed.
    void close() noexcept;

private:
    [[nodiscard]] int find_free(unsigned count) const noexcept;

    uring::registered_files files_;
    std::uint32_t files_number_ = 0;
    uring::registered_buffers buffers_;
    std::vector<bool> taken_; // slots of buffers_
};

} // namespace coil::detail
