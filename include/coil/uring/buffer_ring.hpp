#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/ring.hpp>

#include <atomic>
#include <cassert>
#include <cstdint>

namespace coil::uring {

/// A provided-buffer ring. The application hands buffers to the kernel in advance; an operation
/// with sqe_flag::buffer_select and this group takes one only when data has arrived. Only the queue
/// is shared with the kernel; the buffers belong to the caller.
///
///     buffer_ring buffers{r, 7, 16};                  // group 7, at most 16 buffers
///     for (std::uint16_t id = 0; id < 16; ++id)
///         buffers.add(memory[id], sizeof memory[id], id);
///     buffers.publish();
///     ... *s = prep::recv_multishot(fd, 0, buffers.group()); ...
///     r.for_each_cqe([&](const cqe& c) {
///         if (has_buffer(c)) {
///             use(memory[buffer_id(c)], c.res);
///             buffers.add(memory[buffer_id(c)], sizeof memory[0], buffer_id(c)); // return it
///         }
///     });
///     buffers.publish();
///
/// The kernel takes buffers in the order in which they were added. If none is left, the operation
/// completes with -ENOBUFS. A completion has consumed a buffer if and only if has_buffer() is true;
/// the result may then be 0 (a read at the end of a file). -ECANCELED, -ECONNRESET and the end of a
/// stream consume no buffer, but a send takes its buffer when it begins, and also consumes it if it
/// fails or is cancelled. A consumed buffer leaves the ring; add() returns it once its content has
/// been processed. A bundle (recvsend_flag::bundle) consumes as many consecutive buffers as its
/// result needs, starting with buffer_id(). The ring must never hold more than entries() buffers;
/// this is not checked.
///
/// An *incremental* ring (pbuf_ring_flag::inc, Linux 6.12) fills one buffer with the data of
/// several completions. Each completion names the buffer, and its data begins where the data of the
/// previous completion ended. The kernel keeps the buffer while has_more_buffer() is true, so the
/// caller tracks an offset per id. Use incremental rings for byte streams (sockets, pipes) only: a
/// datagram is truncated to the rest of the buffer. An operation executed by a worker (on a regular
/// file, or with sqe_flag::async) consumes as many bytes as it requested even if its result is
/// short, so the next offset cannot be derived from the results.
///
/// Linux 5.19. Threading: setup(), close() and head() on the ring's thread; add() and publish() on
/// one thread at a time. The ring must outlive this object, or close() must be called first.
/// Closing does not recall a buffer that an operation has already taken: cancel and drain first.
class buffer_ring {
public:
    static constexpr unsigned max_entries = 32768;

    /// Without a ring until setup() is called.
    buffer_ring() noexcept = default;

    /// Calls setup(); throws std::system_error, whose message names the cause and the remedy.
    buffer_ring(ring& r, unsigned group, unsigned entries, bool incremental = false);

    buffer_ring(buffer_ring&& other) noexcept;
    buffer_ring& operator=(buffer_ring&& other) noexcept;
    ~buffer_ring() { close(); }

    /// Registers an empty ring of `entries` (a power of two, at most max_entries) as `group` (0 to
    /// 65535). Returns 0, or -errno if none was registered: -EINVAL (invalid numbers, or the kernel
    /// lacks buffer rings: before 5.19, with `incremental` before 6.12), -EEXIST (the group exists,
    /// or this is not the ring's thread), -ENOMEM (memory, RLIMIT_MEMLOCK), -EBUSY (this object
    /// already has a ring).
    int setup(ring& r, unsigned group, unsigned entries, bool incremental) noexcept;

    /// Unregisters the group and frees the queue. Operations that wait for data with this group
    /// complete with -ENOBUFS when data arrives. Does nothing without a ring.
    void close() noexcept;

    explicit operator bool() const noexcept { return backend_ != nullptr; }

    /// Adds a buffer; the kernel sees it after the next publish(). `size` must not be 0.
    /// Completions report the buffer as `id`; ids need not be unique or ordered.
    void add(void* data, std::uint32_t size, std::uint16_t id) noexcept {
        assert(bufs_ != nullptr && size != 0);
        // Stores the members one by one: the last two bytes of the first entry hold the ring's
        // tail.
        buf& entry = bufs_[tail_++ & mask_];
        entry.addr = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
        entry.len = size;
        entry.bid = id;
    }

    /// Makes all added buffers visible to the kernel.
    void publish() noexcept {
        assert(bufs_ != nullptr);
        std::atomic_ref<std::uint16_t>(bufs_->resv).store(tail_, std::memory_order_release);
    }

    unsigned entries() const noexcept { return bufs_ != nullptr ? mask_ + 1U : 0; }
    unsigned group() const noexcept { return group_; }
    bool incremental() const noexcept { return incremental_; }

    /// The total number of buffers added, modulo 65536.
    std::uint16_t tail() const noexcept { return tail_; }

    /// The total number of buffers the kernel has taken, modulo 65536; or -errno: -EINVAL (before
    /// Linux 6.8), -EBADF (no ring). `uint16_t(tail() - head())` buffers are left. Makes a system
    /// call.
    int head() const noexcept;

private:
    backend* backend_ = nullptr;
    buf* bufs_ = nullptr;
    std::uint16_t tail_ = 0;
    std::uint16_t mask_ = 0;
    std::uint16_t group_ = 0;
    bool incremental_ = false;
};

} // namespace coil::uring
