#pragma once

#include <coil/base/owned.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/base/std_memory.hpp>
#include <coil/uring/abi.hpp>
#include <coil/uring/backend.hpp>
#include <coil/uring/detail/tsan.hpp>
#include <coil/uring/detail/wait_region.hpp>
#include <coil/uring/prep.hpp>
#include <coil/uring/probe.hpp>
#include <coil/uring/ring_options.hpp>
#include <coil/uring/syscall.hpp>

#include <atomic>
#include <cassert>
#include <cstdint>

namespace coil::uring {

namespace detail {
// Practically unlimited, and small enough for the kernel to add the current time to it.
inline constexpr std::chrono::hours longest_wait{24 * 365 * 100};
inline constexpr timespec longest_timeout{std::chrono::seconds{longest_wait}.count(), 0};
} // namespace detail

/// An io_uring submission queue and completion queue, and nothing else: no threads, no allocation
/// after construction, no lock, no virtual call per entry.
///
///     ring r{64};
///     sqe* s = r.acquire();
///     *s = prep::read(fd, buf, sizeof buf, 0);
///     s->user_data = 1;
///     r.commit(s);
///     r.submit_and_wait(1);
///     r.for_each_cqe([](const cqe& c) { use(c.user_data, c.res); });
///
/// Acquiring and committing entries are independent: a caller may acquire several entries, fill
/// them in any order, and commit them in the order in which the kernel is to process them. Links
/// join neighbours in commit order.
///
/// Threading: one thread at a time. With setup::single_issuer (the default) it must be the thread
/// that constructed the ring or, for a ring that started disabled, the thread that called enable();
/// the kernel returns -EEXIST to others. The destructor may run on any thread, but see
/// unregister_ring_fd(). The destructor is not a fence: operations in flight may still write to
/// their buffers. Cancel and drain first. A ring cannot be used in the child of a fork(2).
class ring {
public:
    /// Uses default options. Throws as the other constructors do.
    explicit ring(unsigned entries = 256);

    /// Throws std::system_error with an errno as its code and a message that names cause and remedy
    /// (EPERM: kernel.io_uring_disabled or seccomp; ENOSYS: kernel too old or call blocked; ENOMEM:
    /// RLIMIT_MEMLOCK; EMFILE). The code is EINVAL for options that no kernel can grant.
    explicit ring(const ring_options& options);
    ring(const ring_options& options, std::unique_ptr<backend> k);

    /// Sets up exactly the ring that `p` describes: all its `flags` are required.
    ring(unsigned entries, const params& p);
    ring(unsigned entries, const params& p, std::unique_ptr<backend> k);

    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring();

    // ---- submission

    /// Returns a free entry to fill, whose old content is unspecified; null if every entry is
    /// acquired or waits for submission.
    sqe* acquire() noexcept {
        if (acquired_ - sq_head_seen_ == sq_entries_) [[unlikely]] {
            sq_head_seen_ = load_acquire(sq_head_);
            if (acquired_ - sq_head_seen_ == sq_entries_) {
                return nullptr;
            }
        }
        return &sqes_[array_[acquired_++ & sq_mask_]];
    }

    // The index array holds both the order of commits and the list of free entries. Three running
    // cursors divide its positions, modulo the queue's size N:
    //
    //     head <= tail_ <= acquired_ <= head + N
    //     [head, tail_)         committed: what the kernel reads next
    //     [tail_, acquired_)    one position per acquired entry; its content is meaningless
    //     [acquired_, head + N) the free entries
    //
    // Every entry is in exactly one state: committed, acquired by a caller, or free. acquire()
    // returns the entry at position acquired_. commit() needs an acquired entry, so tail_ <
    // acquired_ and the content of position tail_ is meaningless: overwriting it loses nothing.
    // abandon() likewise writes to acquired_ - 1 >= tail_, which becomes a free position. When the
    // kernel consumes entries, the positions [head, head') become [head + N, head' + N), the end of
    // the free ones, and hold exactly the consumed entries. Hence every order of calls is correct.

    /// Queues an acquired entry for the next submission, after those already committed.
    void commit(sqe* s) noexcept {
        assert(tail_ != acquired_ && index_of(s) < sq_entries_);
        detail::tsan::submitted(*s);
        array_[tail_++ & sq_mask_] = index_of(s);
    }

    /// Returns an acquired entry without submitting it.
    void abandon(sqe* s) noexcept {
        assert(tail_ != acquired_ && index_of(s) < sq_entries_);
        array_[--acquired_ & sq_mask_] = index_of(s);
    }

    /// The number of entries that acquire() can still return.
    unsigned sq_space_left() const noexcept {
        return sq_entries_ - (acquired_ - load_acquire(sq_head_));
    }

    /// The number of entries committed but not yet consumed by the kernel.
    unsigned sq_ready() const noexcept { return tail_ - load_acquire(sq_head_); }

    /// Calls `f(const sqe&)`, oldest first, for each entry that was committed since the previous
    /// call with the same `seen` and that the kernel has not consumed. `seen` is 0 before the first
    /// call. Entries that the kernel has refused are still ready, but are not visited again.
    template <class F>
    void for_each_ready_sqe(std::uint32_t& seen, F&& f) const {
        const std::uint32_t head = load_acquire(sq_head_);
        if (tail_ - seen > tail_ - head) {
            seen = head; // the kernel has consumed what came before
        }
        for (; seen != tail_; ++seen) {
            f(sqes_[array_[seen & sq_mask_]]);
        }
    }

    // ---- the one system call

    /// Publishes and submits all committed entries. Then posts and waits for completions if
    /// requested: with `min_complete` > 0, with a `timeout`, or with enter_flag::getevents in
    /// `extra_flags`. Makes no system call if there is nothing to do.
    ///
    /// `timeout` is relative (with enter_flag::abs_timer, Linux 6.12: a CLOCK_MONOTONIC time).
    /// `min_wait_usec` (feature::min_timeout, Linux 6.12; ignored elsewhere): wait this long for
    /// `min_complete` completions, then return as soon as there is one.
    ///
    /// Returns the number of entries consumed, or -errno if none was consumed and no completion is
    /// available: -EINTR (a signal), -ETIME (the timeout), -EBUSY or -EAGAIN (consume completions
    /// first), -EBADR (completions were lost, see cq_overflow()), -EEXIST (the wrong thread),
    /// -EBADFD (not enabled). A wait that ended early may therefore return 0 or more with fewer
    /// completions than requested; the expiry of a prep::timeout also ends every wait.
    [[gnu::always_inline]] int enter(unsigned min_complete, unsigned extra_flags = 0,
                                     const timespec* timeout = nullptr,
                                     unsigned min_wait_usec = 0) noexcept {
        store_release(sq_tail_, tail_);
        const std::uint32_t to_submit = tail_ - load_acquire(sq_head_);
        std::uint32_t flags = extra_flags;
        if (min_complete != 0 || timeout != nullptr) {
            flags |= enter_flag::getevents;
        }

        if ((setup_flags_ & setup::sqpoll) != 0) [[unlikely]] {
            // The kernel's submission thread sets need_wakeup and then re-reads the tail; this side
            // stores the tail and then reads need_wakeup. At least one of the two must see the
            // other's store.
            std::atomic_thread_fence(std::memory_order_seq_cst);
            if ((load_relaxed(sq_flags_) & sq_flag::need_wakeup) != 0) {
                flags |= enter_flag::sq_wakeup;
            }
            if (flags == 0) {
                return static_cast<int>(to_submit);
            }
        } else if (to_submit == 0 && flags == 0) {
            return 0;
        }

        if ((features_ & feature::min_timeout) == 0) {
            min_wait_usec = 0;
        }
        if (timeout == nullptr && min_wait_usec == 0) {
            return call(to_submit, min_complete, flags, nullptr, 0);
        }
        // With a minimum but without a timeout, the kernel would use the minimum as the timeout.
        if (timeout == nullptr) {
            timeout = &detail::longest_timeout;
            flags &= ~enter_flag::abs_timer;
        }
        if (reg_wait* const registered = wait_.get(); registered != nullptr && is_direct()) {
            registered->ts = *timeout;
            registered->min_wait_usec = min_wait_usec;
            registered->flags = reg_wait_flag::ts;
            return call(to_submit, min_complete,
                        flags | enter_flag::ext_arg | enter_flag::ext_arg_reg, nullptr,
                        sizeof *registered);
        }
        getevents_arg arg{};
        arg.min_wait_usec = min_wait_usec;
        arg.ts = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(timeout));
        return call(to_submit, min_complete, flags | enter_flag::ext_arg, &arg, sizeof arg);
    }

    /// Submits without waiting; also posts completions if the kernel has flagged pending ones.
    [[gnu::always_inline]] int submit() noexcept {
        return enter(0, needs_enter() ? enter_flag::getevents : 0);
    }

    /// Submits and waits until the queue holds `n` completions.
    [[gnu::always_inline]] int submit_and_wait(unsigned n) noexcept {
        return n != 0 ? enter(n) : submit();
    }

    /// Submits and waits for a completion. Returns 0 if there is one, -ETIME on expiry, -EINTR on a
    /// signal, or another error of enter(). With a timeout of zero or less it does not wait.
    int wait(std::chrono::nanoseconds timeout) noexcept;

    // ---- completions

    /// Returns the oldest completion without consuming it, or null. It stays valid until advance().
    const cqe* peek() const noexcept {
        if (!has_completions()) {
            return nullptr;
        }
        const cqe* c = &cqes_[cq_next_ & cq_mask_];
        detail::tsan::completed(*c);
        return c;
    }

    /// Consumes the `n` oldest completions.
    void advance(unsigned n = 1) noexcept {
        assert(n <= load_acquire(cq_tail_) - cq_next_);
        cq_next_ += n;
        store_release(cq_head_, cq_next_);
    }

    /// Calls `f(const cqe&)` for every completion available now, oldest first, then consumes them;
    /// returns their number. `f` may acquire, commit and enter; it must not consume completions. If
    /// `f` throws, those up to and including the current one are consumed.
    template <class F>
    unsigned for_each_cqe(F&& f) {
        const std::uint32_t first = cq_next_;
        const std::uint32_t last = load_acquire(cq_tail_);
        if (first == last) {
            return 0;
        }
        const publish_on_exit publish{*this};
        while (cq_next_ != last) {
            const cqe& c = cqes_[cq_next_++ & cq_mask_];
            detail::tsan::completed(c);
            f(c);
        }
        return last - first;
    }

    bool has_completions() const noexcept { return load_acquire(cq_tail_) != cq_next_; }

    /// Whether completions need an enter() with enter_flag::getevents to be posted: deferred work
    /// (setup::taskrun_flag) or an overflowed completion queue.
    bool needs_enter() const noexcept {
        return (load_relaxed(sq_flags_) & (sq_flag::taskrun | sq_flag::cq_overflow)) != 0;
    }

    /// Whether completions did not fit into the queue. The kernel keeps them until an enter() with
    /// enter_flag::getevents after some have been consumed.
    bool overflowed() const noexcept {
        return (load_relaxed(sq_flags_) & sq_flag::cq_overflow) != 0;
    }

    // ---- the ring itself

    /// Enables a ring that was set up with `start_disabled`, on the thread that will submit.
    /// Returns 0 or -errno (-EBADFD: it was not disabled).
    int enable() noexcept;

    /// Registers the ring's descriptor for the calling thread if the kernel supports it, which
    /// makes its calls slightly faster. The first enter() does so for its thread.
    void register_ring_fd() noexcept;

    /// Undoes register_ring_fd(). Call it on the registered thread if the ring will be destroyed on
    /// another thread and the registered one continues to run: the registration keeps the ring, and
    /// operations in flight, alive.
    void unregister_ring_fd() noexcept;

    std::uint32_t features() const noexcept { return features_; }       // feature::*
    std::uint32_t setup_flags() const noexcept { return setup_flags_; } // granted: setup::*
    unsigned sq_entries() const noexcept { return sq_entries_; }
    unsigned cq_entries() const noexcept { return cq_mask_ + 1; }

    /// Whether this ring's backend supports the operation.
    bool supports(opcode op) const noexcept { return opcodes_.supports(op); }
    const probe_result& opcodes() const noexcept { return opcodes_; }

    backend& get_backend() noexcept { return *backend_; }
    std::chrono::steady_clock::time_point now() noexcept { return backend_->now(); }
    int native_handle() const noexcept { return backend_->native_handle(); }

    /// The entries that the kernel skipped because of an invalid index array: always 0.
    unsigned sq_dropped() const noexcept { return load_relaxed(sq_dropped_); }

    /// Completions lost because the queue was full and the kernel had no memory to store them
    /// elsewhere. A full queue alone loses none.
    unsigned cq_overflow() const noexcept { return load_relaxed(cq_lost_); }

    // The former names; they will be removed in the next release.
    [[deprecated("use sq_space_left()")]] unsigned room() const noexcept { // retired
        return sq_space_left();
    }
    [[deprecated("use sq_ready()")]] unsigned unsubmitted() const noexcept { // retired
        return sq_ready();
    }
    template <class F>
    [[deprecated("use for_each_cqe()")]] unsigned for_each_completion(F&& f) { // retired
        return for_each_cqe(std::forward<F>(f));
    }
    [[deprecated("use sq_dropped()")]] unsigned dropped_submissions() const noexcept { // retired
        return sq_dropped();
    }
    [[deprecated("use cq_overflow()")]] unsigned lost_completions() const noexcept { // retired
        return cq_overflow();
    }
    [[deprecated("use register_ring_fd()")]] void attach_thread() noexcept { // retired
        register_ring_fd();
    }
    [[deprecated("use unregister_ring_fd()")]] void detach_thread() noexcept { // retired
        unregister_ring_fd();
    }

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

    /// Whether this thread calls the kernel without the backend.
    [[nodiscard]] bool is_direct() const noexcept {
        const backend::shortcut& direct = backend_->direct();
        return direct.thread != 0 && direct.thread == detail::thread_number;
    }
    // Always inlined: see syscall.hpp.
    [[gnu::always_inline]] int call(unsigned to_submit, unsigned min_complete, unsigned flags,
                                    const void* arg, std::size_t arg_size) noexcept {
        if (is_direct()) [[likely]] {
            const backend::shortcut& direct = backend_->direct();
            return detail::sys_enter(direct.ring, to_submit, min_complete, flags | direct.flags,
                                     arg, arg_size);
        }
        return backend_->enter(to_submit, min_complete, flags, arg, arg_size);
    }

    void set_up(const ring_options& options);
    void use_queues(const params& p, const backend::mapping& m) noexcept;

    sqe* sqes_ = nullptr;
    std::uint32_t* array_ = nullptr;
    std::uint32_t* sq_head_ = nullptr; // shared with the kernel
    std::uint32_t tail_ = 0;           // published by enter()
    std::uint32_t acquired_ = 0;
    std::uint32_t sq_head_seen_ = 0;
    std::uint32_t sq_mask_ = 0;
    std::uint32_t sq_entries_ = 0;

    std::uint32_t cq_next_ = 0; // the next completion to consume; published as the CQ's head
    cqe* cqes_ = nullptr;
    std::uint32_t* cq_tail_ = nullptr; // shared with the kernel
    std::uint32_t* cq_head_ = nullptr;
    std::uint32_t cq_mask_ = 0;

    std::uint32_t setup_flags_ = 0;
    std::uint32_t features_ = 0;
    std::uint32_t* sq_tail_ = nullptr;
    std::uint32_t* sq_flags_ = nullptr;
    std::uint32_t* sq_dropped_ = nullptr;
    std::uint32_t* cq_lost_ = nullptr;
    detail::wait_region wait_;
    coil::detail::owned<backend> backend_;
    probe_result opcodes_;
};

} // namespace coil::uring
