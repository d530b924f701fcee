#pragma once

#include <coil/base/owned.hpp>
#include <coil/base/std_memory.hpp>
#include <coil/uring/abi.hpp>
#include <coil/uring/backend.hpp>

#include <atomic>
#include <cstdint>

namespace coil::uring {

/// A completion of a zcrx_ring: 32 bytes, laid out as the kernel writes them.
struct zcrx_completion {
    cqe base;
    zcrx_cqe piece; // only with cqe_flag::more in the flags of a recv_zc
};
static_assert(sizeof(zcrx_completion) == 32);

/// A ring with 32-byte completions for zero-copy receives, and nothing else. It is separate from
/// uring::ring because entries of two sizes would cost every completion a branch.
///
///     zcrx_area area{64 << 20, 16384};
///     zcrx_ring r{{.entries = 64, .cq_entries = 4096}, make_linux_backend()};
///     const int queue = area.register_with(r.get_backend(), if_nametoindex("eth0"), 3);
///     r.push(prep::recv_zc(fd, queue), 1);
///     r.enter(1);
///     r.for_each_cqe([&](const zcrx_completion& c) {
///         if (has_more(c.base)) {
///             const std::uint64_t offset = c.piece.off & ~zcrx_area_mask;
///             use(area.data() + offset, c.base.res);
///             area.give_back(offset, c.base.res);
///         }
///     });
///
/// The memory of the area must not be destroyed before the ring.
///
/// Threading: the constructing thread (the kernel returns -EEXIST to others), except for the
/// destructor.
class zcrx_ring {
public:
    struct options {
        unsigned entries = 64;      // requests in one submission
        unsigned cq_entries = 4096; // a recv_zc ends with -ENOSPC if its completions do not fit
    };

    /// Throws std::system_error if the kernel has no such rings (EINVAL: before Linux 6.1), or like
    /// uring::ring.
    zcrx_ring(const options& wanted, std::unique_ptr<backend> k);
    zcrx_ring(const zcrx_ring&) = delete;
    zcrx_ring& operator=(const zcrx_ring&) = delete;
    ~zcrx_ring();

    /// Queues a request for the next enter(). Returns false if the queue is full.
    bool push(sqe request, std::uint64_t user_data) noexcept {
        if (tail_ - load(sq_head_, std::memory_order_acquire) > sq_mask_) {
            return false;
        }
        request.user_data = user_data;
        const std::uint32_t slot = tail_++ & sq_mask_;
        sqes_[slot] = request;
        array_[slot] = slot;
        return true;
    }
    /// The number of requests that the kernel has not consumed.
    [[nodiscard]] unsigned sq_ready() const noexcept {
        return tail_ - load(sq_head_, std::memory_order_acquire);
    }
    /// Removes the newest request that the kernel has not consumed, and returns its user_data.
    /// Precondition: sq_ready() > 0.
    std::uint64_t pop_ready() noexcept { return sqes_[--tail_ & sq_mask_].user_data; }

    /// Submits what was queued, posts completions, and waits for `min_complete` of them, at most
    /// for `timeout` if there is one. Returns the number of requests consumed, or -errno.
    int enter(unsigned min_complete, const timespec* timeout = nullptr) noexcept;

    /// Whether completions need an enter() to be posted.
    [[nodiscard]] bool needs_enter() const noexcept {
        return (load(sq_flags_, std::memory_order_relaxed) &
                (sq_flag::taskrun | sq_flag::cq_overflow)) != 0;
    }
    [[nodiscard]] bool has_completions() const noexcept {
        return load(cq_tail_, std::memory_order_acquire) != cq_next_;
    }
    /// Calls `f(const zcrx_completion&)` for each completion, oldest first, and consumes it before
    /// the call. `f` may push requests; it must not enter.
    template <class F>
    void for_each_cqe(F&& f) {
        const std::uint32_t last = load(cq_tail_, std::memory_order_acquire);
        while (cq_next_ != last) {
            const zcrx_completion c = cqes_[cq_next_++ & cq_mask_];
            std::atomic_ref<std::uint32_t>(*cq_head_).store(cq_next_, std::memory_order_release);
            f(c);
        }
    }

    [[nodiscard]] backend& get_backend() noexcept { return *backend_; }

private:
    [[nodiscard]] static std::uint32_t load(std::uint32_t* word, std::memory_order order) noexcept {
        return std::atomic_ref<std::uint32_t>(*word).load(order);
    }

    coil::detail::owned<backend> backend_;
    sqe* sqes_ = nullptr;
    std::uint32_t* array_ = nullptr;
    std::uint32_t* sq_head_ = nullptr;
    std::uint32_t* sq_tail_ = nullptr;
    std::uint32_t* sq_flags_ = nullptr;
    std::uint32_t sq_mask_ = 0;
    std::uint32_t tail_ = 0; // published by enter()
    zcrx_completion* cqes_ = nullptr;
    std::uint32_t* cq_head_ = nullptr;
    std::uint32_t* cq_tail_ = nullptr;
    std::uint32_t cq_mask_ = 0;
    std::uint32_t cq_next_ = 0;
};

} // namespace coil::uring
