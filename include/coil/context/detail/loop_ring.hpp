#pragma once

#include <coil/base/late.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/context/detail/live_metrics.hpp>
#include <coil/context/detail/own_rings.hpp>
#include <coil/context/detail/probes.hpp>
#include <coil/context/detail/ring_tables.hpp>
#include <coil/context/options.hpp>
#include <coil/core/detail/list_node.hpp>
#include <coil/uring/ring.hpp>

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace coil::detail {

/// An object that is registered with a context's ring and must be told when that ring is closed.
class ring_attachment : list_node<ring_attachment> {
public:
    /// The ring is about to be closed; nothing is in flight. The attachment is detached already.
    virtual void ring_gone() noexcept = 0;

protected:
    ring_attachment() noexcept = default;
    ~ring_attachment() = default;

private:
    friend class loop_ring;
    friend struct list_node<ring_attachment>;
};

/// Called if the kernel no longer serves the ring: operations in flight can then be neither
/// completed nor cancelled.
[[noreturn]] void end_without_kernel(int error) noexcept;

/// The ring of an event loop: opening, closing, the system call, and the objects registered with
/// it. Owner thread.
///
/// The ring opens with the loop and is bound to a thread by its first run(). A SINGLE_ISSUER ring
/// can be used only by the thread that enabled it, so a run() on another thread opens a new ring.
class loop_ring {
public:
    /// Throws std::system_error like uring::ring.
    loop_ring(const io_context_options& options, live_metrics& metrics);
    ~loop_ring() { close(); }
    loop_ring(const loop_ring&) = delete;
    loop_ring& operator=(const loop_ring&) = delete;

    [[nodiscard]] uring::ring& operator*() noexcept { return *ring_; }
    [[nodiscard]] uring::ring* operator->() noexcept { return &*ring_; }
    [[nodiscard]] const uring::ring* operator->() const noexcept { return &*ring_; }
    /// The current time by the clock of the ring's backend.
    [[nodiscard]] std::int64_t now_ns() noexcept {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(ring_->now().time_since_epoch())
            .count();
    }
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(ring_); }

    /// Called before this thread uses the ring. Throws std::system_error.
    void bind_to_this_thread();
    /// Notifies the attachments and closes the ring; nothing is in flight.
    void close() noexcept;

    /// Submits, and waits for `min_complete` completions. Returns normally after an error that may
    /// be temporary.
    void enter(unsigned min_complete, const uring::timespec* timeout,
               unsigned min_wait_us) noexcept;
    /// Whether `entries` SQEs can be acquired now; flushes the queue if that helps.
    [[nodiscard]] bool reserve(unsigned entries) noexcept {
        return ring_->sq_space_left() >= entries || flush(entries);
    }

    void attach(ring_attachment& attachment) noexcept { attachment.push_to(attachments_); }
    static void detach(ring_attachment& attachment) noexcept { attachment.unlink(); }
    [[nodiscard]] ring_tables& tables() noexcept { return tables_; }
    [[nodiscard]] const ring_tables& tables() const noexcept { return tables_; }
    /// A buffer group ID that this loop has not used recently.
    [[nodiscard]] std::uint16_t next_buffer_group() noexcept { return buffer_group_++; }

    /// Whether the kernel supports CQE_SKIP_SUCCESS.
    [[nodiscard]] bool skips_completions() const noexcept { return skips_completions_; }
    /// Whether the kernel supports min_wait_usec (Linux 6.12).
    [[nodiscard]] bool has_min_wait() const noexcept { return min_wait_; }
    /// Whether completions appear in memory without an enter.
    [[nodiscard]] bool posts_asynchronously() const noexcept { return posts_asynchronously_; }

private:
    void open();
    void reopen();
    [[nodiscard]] bool flush(unsigned entries) noexcept;

    late<uring::ring> ring_;
    live_metrics& metrics_;
    const io_context_options& options_;
    ring_tables tables_;
    ring_attachment* attachments_ = nullptr;
    own_ring listed_ring_;       // registers ring_, so that io::msg_ring can refuse to post to it
    std::uint64_t bound_to_ = 0; // number of the thread that the ring was enabled on; 0: none yet
    std::uint32_t observed_ = 0; // the entries that note_submissions() has seen
    std::uint16_t buffer_group_ = 0;
    bool skips_completions_ : 1 = false;
    bool min_wait_ : 1 = false;
    bool posts_asynchronously_ : 1 = true;
};

/// Always inlined: each return executed right after io_uring_enter is mispredicted (the kernel
/// leaves the processor's return stack empty), which costs about 100 ns.
[[gnu::always_inline]] inline void loop_ring::enter(unsigned min_complete,
                                                    const uring::timespec* timeout,
                                                    unsigned min_wait_us) noexcept {
    ++metrics_.enters;
    if (is_observed()) [[unlikely]] {
        note_submissions(*ring_, observed_);
    }
    const int submitted =
        ring_->enter(min_complete, uring::enter_flag::getevents, timeout, min_wait_us);
    if (ring_->overflowed()) [[unlikely]] {
        ++metrics_.overflows;
    }
    if (submitted > 0) {
        metrics_.submissions += static_cast<unsigned>(submitted);
    } else if (submitted == -EBUSY) {
        ++metrics_.refusals; // completions overflowed: reaping makes room
    } else if (submitted == -EAGAIN) {
        ++metrics_.refusals;
        if (min_complete > 0) {
            // The kernel has no memory for requests: sleep until other processes have freed some.
            const std::timespec pause{0, 1'000'000};
            ::nanosleep(&pause, nullptr);
        }
    } else if (submitted == -EPERM || submitted == -EACCES || submitted == -ENOSYS) [[unlikely]] {
        end_without_kernel(submitted);
    }
    // -EINTR, -ETIME: the caller polls again.
}

} // namespace coil::detail
