#pragma once

#include <coil/base/owned.hpp>
#include <coil/uring/abi.hpp>
#include <coil/uring/backend.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::uring {

/// The memory that a zero-copy receive queue shares with the kernel: the area, in which the device
/// places the data, and the refill ring, through which the process returns pieces of the area.
///
/// The kernel counts the pieces of each page that it has handed out. So every piece must be
/// returned once, and each return is an entry of the refill ring. The kernel consumes entries only
/// when the device needs memory. While the refill ring is full, returns are counted here for each
/// page; flush() moves them to the ring. While held_back() is not 0, call flush() from time to
/// time: the kernel does not report that it has consumed entries, and these may have freed no page.
///
/// The memory is not shared with child processes. It must outlive the use of its pieces; the kernel
/// keeps the pages as long as it needs them. Threading: one thread at a time.
class zcrx_area {
public:
    static constexpr unsigned max_refill_entries = 32768;

    /// `bytes` is rounded up to whole pages, `refill_entries` to a power of two. Throws
    /// std::system_error if the numbers are invalid or if there is no memory.
    zcrx_area(std::size_t bytes, unsigned refill_entries);
    zcrx_area(const zcrx_area&) = delete;
    zcrx_area& operator=(const zcrx_area&) = delete;
    ~zcrx_area();

    /// The first byte of the area.
    [[nodiscard]] std::byte* data() const noexcept { return memory_; }
    [[nodiscard]] std::size_t size() const noexcept { return pages_ << page_shift_; }
    [[nodiscard]] unsigned pages() const noexcept { return pages_; }
    [[nodiscard]] unsigned refill_entries() const noexcept { return mask_ + 1; }

    /// Registers this memory as the queue `rx_queue` of the interface with a ring, which must have
    /// setup::cqe32 (or cqe_mixed) and setup::defer_taskrun. Returns the id of the queue for
    /// prep::recv_zc, or -errno. Called at most once successfully.
    [[nodiscard]] int register_with(backend& backend, unsigned interface_index,
                                    unsigned rx_queue) noexcept;

    /// Returns the piece of the area that begins at `offset`. Never waits, never fails.
    void give_back(std::uint64_t offset, std::uint32_t len) noexcept;
    /// Moves returns that did not fit into the refill ring to it, as far as there is space.
    void flush() noexcept {
        if (first_held_ != none) [[unlikely]] {
            flush_held();
        }
    }
    /// The number of returns that wait for space in the refill ring.
    [[nodiscard]] std::size_t held_back() const noexcept { return held_back_; }

private:
    static constexpr std::uint32_t none = UINT32_MAX;

    struct page_returns {
        std::uint32_t count = 0; // returns of pieces of this page
        std::uint32_t next = none;
    };

    [[nodiscard]] bool push(std::uint64_t offset, std::uint32_t len) noexcept;
    void hold_back(std::uint32_t page) noexcept;
    void flush_held() noexcept;

    std::byte* memory_ = nullptr; // the area; the refill ring's region follows
    unsigned page_shift_;
    unsigned pages_;
    std::size_t region_size_;
    std::uint32_t mask_;
    // From the registration on:
    std::uint32_t* head_ = nullptr;
    std::uint32_t* tail_ = nullptr;
    zcrx_rqe* entries_ = nullptr;
    std::uint64_t token_ = 0;
    std::uint32_t next_ = 0; // the value of *tail_
    coil::detail::owned<page_returns[]> held_;
    std::uint32_t first_held_ = none; // list of the pages whose count is not 0
    std::uint32_t last_held_ = none;
    std::size_t held_back_ = 0;
};

} // namespace coil::uring
