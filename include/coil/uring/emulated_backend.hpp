#pragma once

#include <coil/base/owned.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/uring/abi.hpp>
#include <coil/uring/backend.hpp>
#include <coil/uring/emulated_request.hpp>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace coil::uring {

namespace detail {
class emulation;
}

/// The base class of the user-space backends (epoll, simulation). It implements the parts of
/// io_uring that do not depend on files: the shared queues, submission order (links, hard links,
/// drain), timeouts of all kinds and link timeouts, cancellation, completions (overflow, skipped
/// completions, multishot), provided buffers, the tables of registered files and buffers, and the
/// rules of io_uring_setup(2), io_uring_enter(2) and io_uring_register(2). A derived class
/// implements the rest: the meaning of a descriptor and the operations on it.
///
/// A request passes through these calls in this order:
///
///     accepted(r)     the request was consumed; the backend now owns the memory it refers to
///     begin(r)        the request starts (a linked one: after its predecessors)
///     complete(r, n)  called by the derived class, exactly once if begin() returned `pending`;
///                     before that, a multishot request may call part(r, n) any number of times
///     released(r)     the memory belongs to the caller again; the completion is posted next
///
/// A request that never starts (its chain broke, it was cancelled, or an argument is invalid) goes
/// from accepted() to released(). The base class executes these operations without calling begin():
/// nop, timeout, timeout_remove, link_timeout, async_cancel, poll_remove, files_update,
/// provide_buffers, remove_buffers, fixed_fd_install, and close of a direct descriptor. The derived
/// class executes all others, or returns -EOPNOTSUPP (and false from has_opcode()).
///
/// Re-entrancy: complete(), part() and deliver() call no virtual function except released().
/// Whatever a completion triggers (the next link) begins after the derived class has returned.
///
/// Threading: everything except the destructor runs on the ring's thread, inside enter() or
/// do_register(). The derived class collects the results of its own threads in wait().
class emulated_backend : public backend {
public:
    using request = emulated_request;

    ~emulated_backend() override;

    int setup(unsigned entries, params& p, mapping& m) noexcept final;
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t arg_size) noexcept final;
    int do_register(register_op op, void* arg, unsigned count) noexcept final;
    std::chrono::steady_clock::time_point now() noexcept final;
    int native_handle() const noexcept override { return -1; }

    /// Completions are posted only inside enter().
    bool posts_asynchronously() const noexcept final { return false; }

protected:
    emulated_backend();

    /// Returned by begin() if complete() is called later.
    static constexpr int pending = INT_MIN;
    /// A deadline that never expires.
    static constexpr std::int64_t never = INT64_MAX;

    /// The outcome of cancel().
    enum class outcome {
        ended, ///< the request has ended and complete() will not be called: the result is `done`,
               ///< or -ECANCELED if that is 0
        later, ///< complete() will be called soon; the canceller's result says that it was
               ///< cancelled
        busy,  ///< cannot be cancelled: complete() reports the real result; the canceller gets
               ///< -EALREADY
    };

    // ---- Implemented by derived classes. All are noexcept: no exception may reach the ring's
    // caller.

    /// Executes `r.entry` on the descriptor `r.file` and the memory `r.data()`. Returns a result
    /// (>= 0, or -errno) or `pending`. For a request that completes later, all arguments that
    /// io_uring reads at submission are copied before the caller can change them (see copy_args()).
    ///
    /// Results are those of io_uring's completions. If accept, openat, openat2 or socket request a
    /// direct descriptor (`file_index` not 0), the result is a new descriptor of the derived class,
    /// which the base class moves into its table; pipe stores the pair in `*addr`.
    virtual int begin(request& r) noexcept = 0;

    /// Whether a send with one buffer and no options may be tried with send(2) on `entry.fd` before
    /// a request is created for it. May return true only if the descriptor belongs to the operating
    /// system and no other send waits on it. If send(2) would block, begin() is called for the
    /// send, as for all others. accepted() and released() are not called for sends that complete in
    /// this way.
    virtual bool may_send_now(const sqe& entry) noexcept {
        static_cast<void>(entry);
        return false;
    }

    /// Cancels a pending request.
    virtual outcome cancel(request& r) noexcept = 0;

    /// Runs until complete() or part() was called, at most until `deadline_ns` on the clock of
    /// now_ns() (`never`: without a limit). A deadline that has passed means: process only what is
    /// ready. Returns 0, or -EINTR if a signal interrupted the wait. May return spuriously.
    ///
    /// A derived class with a virtual clock advances it to the deadline if nothing happens earlier.
    virtual int wait(std::int64_t deadline_ns) noexcept = 0;

    /// The clock of timeouts without a clock flag, of enter()'s timeouts and of now(), in
    /// nanoseconds.
    virtual std::int64_t now_ns() noexcept = 0;
    /// CLOCK_REALTIME and CLOCK_BOOTTIME, in nanoseconds.
    virtual std::int64_t realtime_ns() noexcept = 0;
    virtual std::int64_t boottime_ns() noexcept = 0;

    /// Whether the derived class implements `op`, for the probe. The base class adds its own
    /// opcodes.
    virtual bool has_opcode(opcode op) const noexcept = 0;

    /// Duplicates `descriptor` for the file table: returns a descriptor (>= 0) of the derived class
    /// that has no other user, or -errno (-EBADF).
    virtual int hold_file(int descriptor) noexcept = 0;
    /// Closes a file that hold_file() or begin() returned for the table.
    virtual void drop_file(int file) noexcept = 0;
    /// Returns an ordinary descriptor for a file of the table (fixed_fd_install), or -errno.
    virtual int install_file(int file, bool close_on_exec) noexcept = 0;
    /// Whether a descriptor is open, and whether two descriptors refer to the same file:
    /// cancellation by descriptor compares files.
    virtual bool is_open(int descriptor) noexcept { return descriptor >= 0; }
    virtual bool is_same_file(int one, int other) noexcept { return one == other; }
    /// Called before a cancellation by descriptor, which must not match requests that still wait on
    /// an earlier file with the same number.
    virtual void forget_earlier_file(int descriptor) noexcept { static_cast<void>(descriptor); }
    /// The maximum number of files in a table (RLIMIT_NOFILE).
    virtual unsigned max_files() noexcept { return 1U << 20; }

    /// The backend owns the request's memory from this call until released().
    virtual void accepted(request& r) noexcept { static_cast<void>(r); }
    /// The memory belongs to the caller again; the completion is posted next. A zero-copy send is
    /// released with its notification.
    virtual void released(request& r) noexcept { static_cast<void>(r); }

    /// Creates a request when no free one exists; override it to add members. Requests are reused:
    /// begin() must reset the added members.
    virtual std::unique_ptr<request> make_request();

    /// io_uring_register(2) operations that the base class does not implement.
    virtual int control_more(register_op op, void* arg, unsigned count) noexcept;

    /// Called while the ring is set up. Returns 0, or the -errno with which the setup fails; a
    /// later attempt calls it again.
    virtual int open_world() noexcept { return 0; }
    /// The ring was set up enabled, or has just been enabled: the calling thread is the ring's
    /// thread.
    virtual void entered_by_owner() noexcept {}

    // ---- Called by derived classes.

    /// Completes a pending request with a result and completion flags (cqe_flag::sock_nonempty; the
    /// base class adds those for buffers). `r` must not be used afterwards.
    void complete(request& r, int result, std::uint32_t flags = 0) noexcept;

    /// Posts one result of a multishot request that continues, with cqe_flag::more. Returns false
    /// if the completion queue is full. The request must then end, as in io_uring: call complete()
    /// with its next result.
    [[nodiscard]] bool part(request& r, int result, std::uint32_t flags = 0) noexcept;

    /// Posts a completion that belongs to no request of this ring (msg_ring from another ring).
    void deliver(std::uint64_t user_data, int result, std::uint32_t flags) noexcept;

    /// With sqe_flag::buffer_select: reserves the group's next buffer as r.data() (a bundle:
    /// several buffers, for up to `most` bytes; 0: no limit). Returns 0, or -ENOBUFS. complete()
    /// and part() consume the buffer if the result shows that it was used (> 0; for read also 0);
    /// otherwise it stays in the group. Does nothing for other requests.
    int select(request& r, std::size_t most = 0) noexcept;
    /// Returns the buffer that select() reserved, unused.
    void unselect(request& r) noexcept;
    /// Consumes the reserved buffer, with all of r.data(), whatever the result, so that no other
    /// request can take it. For requests that another thread executes.
    void hold_selected(request& r) noexcept;

    /// Copies what io_uring reads at submission (paths, addresses, vectors, headers, ...), so that
    /// `r.entry` and `r.data()` no longer refer to the caller's copies. Call it before another
    /// thread gets the request; after begin(), the base class calls it for pending requests.
    void copy_args(request& r) noexcept;

    /// For recvmsg, after it was executed with r.header: copies name length, control length and
    /// flags to the caller's header. In a multishot request it fills the leading recvmsg_out.
    void finish_message(request& r, int payload) noexcept;

    /// Adds a file that came from another ring to the table, which owns it from now on, even on
    /// failure. `file_index` is a slot counted from 1, or file_index_alloc. Returns the slot chosen
    /// for file_index_alloc, otherwise 0, or -errno.
    int add_file(int file, std::uint32_t file_index) noexcept;

    /// Closes the files of the table. The destructor of the derived class must call it while its
    /// own members still exist. Afterwards no request is begun, completed or released.
    void close_world() noexcept;

    /// The expiry of the ring's earliest timeout, on the clock of now_ns(), or `never`.
    std::int64_t next_timer_ns() const noexcept;

    /// The number of requests pending in the derived class.
    unsigned pending_count() const noexcept;
    /// Calls `f(request&)` for every request pending in the derived class, oldest first.
    template <class F>
    void for_each_pending(F&& f) {
        for (request* r = first_pending(); r != nullptr;) {
            request* next = next_pending(*r);
            f(*r);
            r = next;
        }
    }
    /// Calls `f(void* data, std::size_t size, bool written)` for each area of the caller's memory
    /// that `r` owns until it is released, including buffers reserved by select(). `written`: the
    /// kernel may write to it.
    template <class F>
    static void for_each_owned(const request& r, F&& f) {
        request::owned areas[request::max_owned];
        const unsigned n = user_memory_of(r, areas);
        for (unsigned i = 0; i < n; ++i) {
            f(areas[i].data, areas[i].size, areas[i].written);
        }
    }
    /// Stores up to `room` of the buffers in provided-buffer rings, to which the backend may write
    /// at any time, in `areas`. Returns the number of all such buffers.
    unsigned provided_buffers(request::owned* areas, unsigned room) const noexcept;

private:
    friend class detail::emulation;

    request* first_pending() const noexcept;
    static request* next_pending(request& r) noexcept;
    static unsigned user_memory_of(const request& r, request::owned* areas) noexcept;

    coil::detail::owned<detail::emulation> core_;
};

} // namespace coil::uring
