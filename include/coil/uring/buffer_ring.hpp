#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/ring.hpp>

#include <atomic>
#include <cassert>
#include <cstdint>

namespace coil::uring {

/// A provided-buffer ring: buffers given to the kernel in advance, from which operations with
/// sqe_flag::buffer_select and this group take one when there is data, and not before. The memory
/// that is shared with the kernel is the queue alone; the buffers are the caller's.
///
///     buffer_ring buffers{r, 7, 16};                  // group 7, room for 16 buffers
///     for (std::uint16_t id = 0; id < 16; ++id)
///         buffers.add(memory[id], sizeof memory[id], id);
///     buffers.publish();
///     ... *s = prep::recv_multishot(fd, 0, buffers.group()); ...
///     r.for_each_completion([&](const cqe& c) {
///         if (has_buffer(c)) {
///             use(memory[buffer_id(c)], c.res);
///             buffers.add(memory[buffer_id(c)], sizeof memory[0], buffer_id(c)); // give it back
///         }
///     });
///     buffers.publish();
///
/// The kernel takes buffers in the order in which they were added; without any an operation ends
/// with -ENOBUFS. A buffer is taken if and only if a completion says has_buffer(), which may come
/// with a result of 0 (a read at the end of a file); -ECANCELED, -ECONNRESET and the end of a
/// stream take none. A taken buffer is gone from the ring: adding it again, when its content has
/// been dealt with, gives it back. A bundle (recvsend_flag::bundle) takes as many as its result
/// needs, in order from buffer_id() on. There must never be more than entries() buffers in the
/// ring; nobody checks.
///
/// An *incremental* ring (pbuf_ring_flag::inc, Linux 6.12) fills a buffer by and by. Each
/// completion names the buffer, its data begins where that of the one before ended, and while
/// has_more_buffer() holds, the kernel keeps the buffer; so the caller keeps an offset per id. It
/// is for byte streams (sockets, pipes): a datagram is cut to what is left of the buffer. And an
/// operation that a worker executes (on a regular file, or with sqe_flag::async) uses up as much as
/// it asked for, however short its result, so that the next offset is not known from the results.
///
/// Linux 5.19. Threads: setup(), close() and head() on the ring's thread; add() and publish() on
/// one thread at a time. The ring must outlive this object, or close() must come before its end.
/// Closing does not recall a buffer that an operation has already taken: cancel and drain first.
class buffer_ring {
public:
    static constexpr unsigned max_entries = 32768;

    /// No ring yet; setup() makes one.
    buffer_ring() noexcept = default;

    /// As setup(), but throws std::system_error with a sentence that names cause and remedy.
    buffer_ring(ring& r, unsigned group, unsigned entries, bool incremental = false);

    buffer_ring(buffer_ring&& other) noexcept;
    buffer_ring& operator=(buffer_ring&& other) noexcept;
    ~buffer_ring() { close(); }

    /// Registers an empty ring of `entries` (a power of two, at most max_entries) as `group` (0 to
    /// 65535). 0, or -errno and no ring: -EINVAL (such numbers, or a kernel without buffer rings:
    /// before 5.19, with `incremental` before 6.12), -EEXIST (the group exists; or not the ring's
    /// thread), -ENOMEM (memory, RLIMIT_MEMLOCK), -EBUSY (this object has a ring already).
    int setup(ring& r, unsigned group, unsigned entries, bool incremental) noexcept;

    /// Unregisters the group and frees the queue. Operations that wait for data with this group end
    /// with -ENOBUFS when there is some. Without a ring it does nothing.
    void close() noexcept;

    explicit operator bool() const noexcept { return kernel_ != nullptr; }

    /// Puts a buffer into the ring; the kernel sees it after the next publish(). `size` is not 0.
    /// `id` is what completions will call it; ids need not be unique nor in order.
    void add(void* data, std::uint32_t size, std::uint16_t id) noexcept {
        assert(bufs_ != nullptr && size != 0);
        // Member by member: the last two bytes of the first entry are the ring's tail.
        buf& entry = bufs_[tail_++ & mask_];
        entry.addr = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
        entry.len = size;
        entry.bid = id;
    }

    /// Shows the kernel all that has been added.
    void publish() noexcept {
        assert(bufs_ != nullptr);
        std::atomic_ref<std::uint16_t>(bufs_->resv).store(tail_, std::memory_order_release);
    }

    unsigned entries() const noexcept { return bufs_ != nullptr ? mask_ + 1U : 0; }
    unsigned group() const noexcept { return group_; }
    bool incremental() const noexcept { return incremental_; }

    /// How many buffers have been added in all, modulo 65536.
    std::uint16_t tail() const noexcept { return tail_; }

    /// How many buffers the kernel has taken in all, modulo 65536; or -errno: -EINVAL (before Linux
    /// 6.8), -EBADF (no ring). A system call; `uint16_t(tail() - head())` buffers are left.
    int head() const noexcept;

private:
    kernel* kernel_ = nullptr;
    buf* bufs_ = nullptr;
    std::uint16_t tail_ = 0;
    std::uint16_t mask_ = 0;
    std::uint16_t group_ = 0;
    bool incremental_ = false;
};

} // namespace coil::uring
