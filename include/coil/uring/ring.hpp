#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/kernel.hpp>
#include <coil/uring/prep.hpp>
#include <coil/uring/probe.hpp>
#include <coil/uring/ring_options.hpp>
#include <coil/uring/syscall.hpp>
#include <coil/uring/tsan.hpp>

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <memory>

namespace coil::uring {

namespace detail {
// As good as for ever, and small enough for the kernel to add the present to it.
inline constexpr std::chrono::hours longest_wait{24 * 365 * 100};
inline constexpr timespec longest_timeout{std::chrono::seconds{longest_wait}.count(), 0};
} // namespace detail

/// A submission queue, a completion queue, and nothing else: no threads, no allocation after
/// construction, no lock, no virtual call per entry.
///
///     ring r{64};
///     sqe* s = r.acquire();
///     *s = prep::read(fd, buf, sizeof buf, 0);
///     s->user_data = 1;
///     r.commit(s);
///     r.submit_and_wait(1);
///     r.for_each_completion([](const cqe& c) { use(c.user_data, c.res); });
///
/// Entries are acquired and committed in independent orders: acquire several, fill them as results
/// come, commit them in the order in which the kernel shall see them; links join neighbours in
/// commit order.
///
/// Threads: one at a time. With setup::single_issuer (the default) it must be the thread that
/// constructed the ring, or for a ring that started disabled the thread that called enable(); the
/// kernel answers -EEXIST to others. Destruction may happen on any thread, but see detach_thread().
/// Destruction is no fence: what is in flight may go on writing into its buffers. Cancel and drain
/// first. A ring does not survive fork(2) in the child.
class ring {
public:
    /// With default options. Throws as the other constructor does.
    explicit ring(unsigned entries = 256);

    /// Throws std::system_error with errno as its code and a sentence that names cause and remedy
    /// (EPERM: kernel.io_uring_disabled or seccomp; ENOSYS: kernel too old or call blocked; ENOMEM:
    /// RLIMIT_MEMLOCK; EMFILE), or whose code is EINVAL for options that no kernel can grant.
    explicit ring(const ring_options& options, std::unique_ptr<kernel> k = make_linux_kernel());

    /// Exactly the ring that `p` describes: its `flags` are required, and nothing is wished for.
    ring(unsigned entries, const params& p, std::unique_ptr<kernel> k = make_linux_kernel());

    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring();

    // ---- submission

    /// A free entry to fill, with whatever bytes its last use left in it; null when every entry is
    /// acquired or waits for submission.
    sqe* acquire() noexcept {
        if (acquired_ - sq_head_seen_ == sq_entries_) [[unlikely]] {
            sq_head_seen_ = load_acquire(sq_head_);
            if (acquired_ - sq_head_seen_ == sq_entries_)
                return nullptr;
        }
        return &sqes_[array_[acquired_++ & sq_mask_]];
    }

    // The index array is where the order of commits is written, and the list of free entries too.
    // Three running cursors divide its positions, modulo the queue's size N:
    //
    //     head <= tail_ <= acquired_ <= head + N
    //     [head, tail_)         committed: what the kernel reads next
    //     [tail_, acquired_)    as many positions as entries are held; their contents mean nothing
    //     [acquired_, head + N) the free entries
    //
    // Every entry is in exactly one of: the committed positions, the callers' hands, the free
    // positions. acquire() moves the entry at acquired_ into the caller's hands. commit() needs a
    // held entry, so tail_ < acquired_ and position tail_ means nothing: writing there loses
    // nothing. abandon() likewise writes to acquired_ - 1 >= tail_, and makes it a free position.
    // When the kernel consumes, the positions [head, head') turn into [head + N, head' + N), the
    // end of the free ones, with the very entries that were consumed. Hence any order is right.

    /// Queues an acquired entry for the next submission, behind those already committed.
    void commit(sqe* s) noexcept {
        assert(tail_ != acquired_ && index_of(s) < sq_entries_);
        tsan::submitted(*s);
        array_[tail_++ & sq_mask_] = index_of(s);
    }

    /// Gives an acquired entry back without submitting it.
    void abandon(sqe* s) noexcept {
        assert(tail_ != acquired_ && index_of(s) < sq_entries_);
        array_[--acquired_ & sq_mask_] = index_of(s);
    }

    /// How many entries acquire() would still give.
    unsigned room() const noexcept { return sq_entries_ - (acquired_ - load_acquire(sq_head_)); }

    /// How many entries are committed and not yet consumed by the kernel.
    unsigned unsubmitted() const noexcept { return tail_ - load_acquire(sq_head_); }

    // ---- the one system call

    /// Publishes and submits all that is committed; then posts and waits for completions if asked
    /// to: with `min_complete` > 0, with a `timeout`, or with enter_flag::getevents among
    /// `extra_flags`. With nothing to do it makes no system call.
    ///
    /// `timeout` is relative (with enter_flag::abs_timer, Linux 6.12: a CLOCK_MONOTONIC time).
    /// `min_wait_usec` (feature::min_timeout, Linux 6.12; ignored elsewhere): go on collecting
    /// completions for so long even when there are some, and be content with one afterwards.
    ///
    /// Returns how many entries the kernel consumed, or -errno when it consumed none and has
    /// nothing to show either: -EINTR (a signal), -ETIME (the timeout), -EBUSY or -EAGAIN (reap
    /// completions first), -EBADR (completions were lost, see lost_completions()), -EEXIST (the
    /// wrong thread), -EBADFD (not enabled). So a wait that ended early may return 0 or more, with
    /// fewer completions than asked for; the expiry of a prep::timeout also ends every wait.
    [[gnu::always_inline]] int enter(unsigned min_complete, unsigned extra_flags = 0,
                                     const timespec* timeout = nullptr,
                                     unsigned min_wait_usec = 0) noexcept {
        store_release(sq_tail_, tail_);
        const std::uint32_t to_submit = tail_ - load_acquire(sq_head_);
        std::uint32_t flags = extra_flags;
        if (min_complete != 0 || timeout != nullptr)
            flags |= enter_flag::getevents;

        if ((setup_flags_ & setup::sqpoll) != 0) [[unlikely]] {
            // The kernel's thread announces its sleep and then looks at the tail once more; this
            // side moves the tail and then looks at the announcement. One must see the other.
            std::atomic_thread_fence(std::memory_order_seq_cst);
            if ((load_relaxed(sq_flags_) & sq_flag::need_wakeup) != 0)
                flags |= enter_flag::sq_wakeup;
            if (flags == 0)
                return static_cast<int>(to_submit);
        } else if (to_submit == 0 && flags == 0) {
            return 0;
        }

        if ((features_ & feature::min_timeout) == 0)
            min_wait_usec = 0;
        if (timeout == nullptr && min_wait_usec == 0)
            return call(to_submit, min_complete, flags, nullptr, 0);
        // With a minimum and no timeout the kernel would take the minimum for the timeout.
        if (timeout == nullptr) {
            timeout = &detail::longest_timeout;
            flags &= ~enter_flag::abs_timer;
        }
        getevents_arg arg{};
        arg.min_wait_usec = min_wait_usec;
        arg.ts = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(timeout));
        return call(to_submit, min_complete, flags | enter_flag::ext_arg, &arg, sizeof arg);
    }

    /// Submits; also posts completions where the kernel has flagged some. Does not wait.
    [[gnu::always_inline]] int submit() noexcept {
        return enter(0, needs_enter() ? enter_flag::getevents : 0);
    }

    /// Submits, and waits until there are `n` completions in the queue.
    [[gnu::always_inline]] int submit_and_wait(unsigned n) noexcept {
        return n != 0 ? enter(n) : submit();
    }

    /// Submits, and waits for a completion: 0 when there is one, -ETIME when the time is over,
    /// -EINTR on a signal, or another error of enter(). A time of zero or less looks and does not
    /// wait.
    int wait(std::chrono::nanoseconds timeout) noexcept;

    // ---- completions

    /// The oldest completion, or null; it stays there until advance().
    const cqe* peek() const noexcept {
        if (!has_completions())
            return nullptr;
        const cqe* c = &cqes_[cq_next_ & cq_mask_];
        tsan::completed(*c);
        return c;
    }

    /// Gives the `n` oldest completions back to the kernel.
    void advance(unsigned n = 1) noexcept {
        assert(n <= load_acquire(cq_tail_) - cq_next_);
        cq_next_ += n;
        store_release(cq_head_, cq_next_);
    }

    /// Calls `f(const cqe&)` for every completion that is there now, oldest first, then gives them
    /// all back; returns how many. `f` may acquire, commit and enter; it must not consume
    /// completions. When `f` throws, those up to the one it threw on are given back.
    template <class F>
    unsigned for_each_completion(F&& f) {
        const std::uint32_t first = cq_next_;
        const std::uint32_t last = load_acquire(cq_tail_);
        if (first == last)
            return 0;
        const publish_on_exit publish{*this};
        while (cq_next_ != last) {
            const cqe& c = cqes_[cq_next_++ & cq_mask_];
            tsan::completed(c);
            f(c);
        }
        return last - first;
    }

    bool has_completions() const noexcept { return load_acquire(cq_tail_) != cq_next_; }

    /// Whether completions wait for an enter() with enter_flag::getevents: deferred work
    /// (setup::taskrun_flag) or an overflown completion queue.
    bool needs_enter() const noexcept {
        return (load_relaxed(sq_flags_) & (sq_flag::taskrun | sq_flag::cq_overflow)) != 0;
    }

    /// Whether there are completions that the queue had no room for. The kernel keeps them until an
    /// enter() with enter_flag::getevents after some were consumed.
    bool overflowed() const noexcept {
        return (load_relaxed(sq_flags_) & sq_flag::cq_overflow) != 0;
    }

    // ---- the ring itself

    /// Starts a ring that was set up with `start_disabled`, on the thread that will submit.
    /// 0 or -errno (-EBADFD: it was not disabled).
    int enable() noexcept;

    /// Makes this thread reach the ring by a registered index, which is a little faster, where the
    /// kernel has that. The first enter() does so for the thread that made it.
    void attach_thread() noexcept;

    /// Ends that. To be called on the attached thread before the ring is destroyed on another one,
    /// if the first lives on: its registration keeps the ring, and what is in flight, alive.
    void detach_thread() noexcept;

    std::uint32_t features() const noexcept { return features_; }       // feature::*
    std::uint32_t setup_flags() const noexcept { return setup_flags_; } // granted: setup::*
    unsigned sq_entries() const noexcept { return sq_entries_; }
    unsigned cq_entries() const noexcept { return cq_mask_ + 1; }

    /// Whether this ring's kernel has the operation.
    bool supports(opcode op) const noexcept { return opcodes_.supports(op); }
    const probe_result& opcodes() const noexcept { return opcodes_; }

    kernel& get_kernel() noexcept { return *kernel_; }
    std::chrono::steady_clock::time_point now() noexcept { return kernel_->now(); }
    int native_handle() const noexcept { return kernel_->native_handle(); }

    /// Entries the kernel skipped because the index array was broken: always 0.
    unsigned dropped_submissions() const noexcept { return load_relaxed(sq_dropped_); }

    /// Completions lost for ever because the kernel had no memory to keep them beside a full
    /// queue. A merely full queue loses none.
    unsigned lost_completions() const noexcept { return load_relaxed(cq_lost_); }

private:
    struct publish_on_exit {
        ring& r;
        ~publish_on_exit() { store_release(r.cq_head_, r.cq_next_); }
    };

    static std::uint32_t load_acquire(std::uint32_t* word) noexcept {
        return std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire);
    }
    static std::uint32_t load_relaxed(std::uint32_t* word) noexcept {
        return std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_relaxed);
    }
    static void store_release(std::uint32_t* word, std::uint32_t value) noexcept {
        std::atomic_ref<std::uint32_t>(*word).store(value, std::memory_order_release);
    }
    std::uint32_t index_of(const sqe* s) const noexcept {
        return static_cast<std::uint32_t>(s - sqes_);
    }

    // Never a function of its own: see syscall.hpp.
    [[gnu::always_inline]] int call(unsigned to_submit, unsigned min_complete, unsigned flags,
                                    const void* arg, std::size_t arg_size) noexcept {
        const kernel::shortcut& direct = kernel_->direct();
        if (direct.thread != 0 && direct.thread == detail::thread_number) [[likely]]
            return detail::sys_enter(direct.ring, to_submit, min_complete, flags | direct.flags,
                                     arg, arg_size);
        return kernel_->enter(to_submit, min_complete, flags, arg, arg_size);
    }

    void set_up(const ring_options& options);

    sqe* sqes_ = nullptr;
    std::uint32_t* array_ = nullptr;
    std::uint32_t* sq_head_ = nullptr; // the kernel's
    std::uint32_t tail_ = 0;           // published by enter()
    std::uint32_t acquired_ = 0;
    std::uint32_t sq_head_seen_ = 0;
    std::uint32_t sq_mask_ = 0;
    std::uint32_t sq_entries_ = 0;

    std::uint32_t cq_next_ = 0; // the next completion to consume; published as the CQ's head
    cqe* cqes_ = nullptr;
    std::uint32_t* cq_tail_ = nullptr; // the kernel's
    std::uint32_t* cq_head_ = nullptr;
    std::uint32_t cq_mask_ = 0;

    std::uint32_t setup_flags_ = 0;
    std::uint32_t features_ = 0;
    std::uint32_t* sq_tail_ = nullptr;
    std::uint32_t* sq_flags_ = nullptr;
    std::uint32_t* sq_dropped_ = nullptr;
    std::uint32_t* cq_lost_ = nullptr;
    std::unique_ptr<kernel> kernel_;
    probe_result opcodes_;
};

} // namespace coil::uring
