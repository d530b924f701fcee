#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/emulated_request.hpp>
#include <coil/uring/kernel.hpp>

#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace coil::uring {

namespace detail {
class emulation;
}

/// A kernel in user space, without a world: it does for a ring what io_uring does before and after
/// it touches a file. That is the memory of the queues, the order of submissions (links, hard
/// links, drain), time (timeouts of all kinds, link timeouts), cancellation, completions (overflow,
/// skipped ones, streams), provided buffers, the tables of files and buffers, and the rules of
/// io_uring_setup(2), io_uring_enter(2) and io_uring_register(2). A derived class supplies the
/// world: what a descriptor is, and how the operations on it go.
///
/// What the world gets to see, in this order:
///
///     accepted(r)     consumed from the queue; from now on it owns the memory it names
///     begin(r)        its turn has come (a linked entry: after those before it)
///     complete(r, n)  by the world, exactly once when begin() said `pending`; before that any
///                     number of part(r, n) when it is a stream
///     released(r)     its memory is the caller's again; then the completion is posted
///
/// A request that never gets its turn (its chain broke, it was cancelled, or an argument is wrong)
/// goes from accepted() to released(). What the core does by itself the world does not see in
/// begin(): nop, timeout, timeout_remove, link_timeout, async_cancel, poll_remove, files_update,
/// provide_buffers, remove_buffers, fixed_fd_install, and close of a direct descriptor. Everything
/// else it does, or answers -EOPNOTSUPP (and says no in has_opcode()).
///
/// Re-entrance: complete(), part() and deliver() never call back into the world but for released().
/// What follows from a completion (the next link) begins when the world has returned.
///
/// Threads: everything happens on the ring's thread, in enter() or control(), the destructor
/// excepted. What the world's own threads finish it brings home in wait().
class emulated_kernel : public kernel {
public:
    using request = emulated_request;

    ~emulated_kernel() override;

    int setup(unsigned entries, params& p, mapping& m) noexcept final;
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t arg_size) noexcept final;
    int control(register_op op, void* arg, unsigned count) noexcept final;
    std::chrono::steady_clock::time_point now() noexcept final;
    int native_handle() const noexcept override { return -1; }

    /// Completions come in enter() alone.
    bool completes_by_itself() const noexcept final { return false; }

protected:
    emulated_kernel();

    /// What begin() returns when complete() is called later.
    static constexpr int pending = INT_MIN;
    /// A deadline that never comes.
    static constexpr std::int64_t never = INT64_MAX;

    /// What cancel() did.
    enum class outcome {
        ended, ///< the world has let go for good and does not call complete(): -ECANCELED, or what
               ///< is `done`
        later, ///< it will end soon, by complete(); the canceller is told that it was cancelled
        busy,  ///< it cannot be recalled: complete() comes with its result; -EALREADY
    };

    // ---- the world: what a derived class supplies. All noexcept: the caller is C memory.

    /// Does what `r.entry` asks for, with `r.file` for the descriptor and `r.data()` for the
    /// memory: a result (>= 0, or -errno) at once, or `pending`. Of a request that ends later all
    /// arguments that io_uring reads at submission have been copied or will be before the caller
    /// can change them (see keep()).
    ///
    /// Results are what io_uring's completions say. For a direct descriptor (`file_index` not 0) of
    /// accept, openat, openat2 and socket it is a new descriptor of the world's, which the core
    /// puts into its table; for pipe the pair is in `*addr`.
    virtual int begin(request& r) noexcept = 0;

    /// Ends a request that is pending.
    virtual outcome cancel(request& r) noexcept = 0;

    /// Lets the world go on until complete() or part() was called, at most until `deadline_ns` on
    /// now_ns(), `never` for as long as it takes; a deadline that is not in the future: only what
    /// is there. 0, or -EINTR when a signal ended it. May return early for no reason.
    ///
    /// A world with a clock of its own goes on to the deadline where nothing happens before.
    virtual int wait(std::int64_t deadline_ns) noexcept = 0;

    /// The clock of timeouts without a clock flag, of enter()'s timeouts and of now(), in
    /// nanoseconds.
    virtual std::int64_t now_ns() noexcept = 0;
    /// CLOCK_REALTIME's and CLOCK_BOOTTIME's.
    virtual std::int64_t realtime_ns() noexcept = 0;
    virtual std::int64_t boottime_ns() noexcept = 0;

    /// Which operations there are, for the probe. The core answers for its own.
    virtual bool has_opcode(opcode op) const noexcept = 0;

    /// A second owner of the file that `descriptor` names, for the table; a descriptor of the
    /// world's
    /// (>= 0) that nobody else uses, or -errno (-EBADF).
    virtual int hold_file(int descriptor) noexcept = 0;
    /// Ends a file that hold_file() or begin() gave to the table.
    virtual void drop_file(int file) noexcept = 0;
    /// An ordinary descriptor for a file of the table (fixed_fd_install), or -errno.
    virtual int install_file(int file, bool close_on_exec) noexcept = 0;
    /// Whether that descriptor is open, and whether two of the world's mean the same file:
    /// cancelling by descriptor compares files.
    virtual bool is_open(int descriptor) noexcept { return descriptor >= 0; }
    virtual bool is_same_file(int one, int other) noexcept { return one == other; }
    /// How many files a table can have at most (RLIMIT_NOFILE).
    virtual unsigned most_files() noexcept { return 1U << 20; }

    /// A request's memory belongs to the kernel from here ...
    virtual void accepted(request& r) noexcept { static_cast<void>(r); }
    /// ... to here, where it does not any more; the completion is posted next. A zero-copy send is
    /// released with its notification.
    virtual void released(request& r) noexcept { static_cast<void>(r); }

    /// A new request, when none is free; overridden where the world wants more members. Requests
    /// are used again: begin() resets what must not survive.
    virtual std::unique_ptr<request> make_request();

    /// io_uring_register(2) beyond what the core has.
    virtual int control_more(register_op op, void* arg, unsigned count) noexcept;

    /// The ring is being set up: 0, or the -errno that says why not. May be called again then.
    virtual int open_world() noexcept { return 0; }
    /// The ring was set up enabled, or is enabled now: this is its thread.
    virtual void entered_by_owner() noexcept {}

    // ---- for the world

    /// Ends a pending request: result and completion flags (cqe_flag::sock_nonempty; the core adds
    /// those of buffers). `r` is gone afterwards.
    void complete(request& r, int result, std::uint32_t flags = 0) noexcept;

    /// One result of a stream (multishot), which goes on: posted with cqe_flag::more. False when
    /// the completion queue is full: then the stream must end as io_uring's do, with complete() and
    /// the next result.
    [[nodiscard]] bool part(request& r, int result, std::uint32_t flags = 0) noexcept;

    /// Posts a completion that belongs to no request here (msg_ring from another ring).
    void deliver(std::uint64_t user_data, int result, std::uint32_t flags) noexcept;

    /// With sqe_flag::buffer_select: takes hold of the group's next buffer (a bundle: of several,
    /// for up to `most` bytes, 0: as it likes), which is then r.data(). 0, or -ENOBUFS. complete()
    /// and part() give it to the application if the result says that it was used (> 0; for read
    /// also 0), else it goes back. On other requests it does nothing.
    int select(request& r, std::size_t most = 0) noexcept;
    /// Gives back what select() took, when nothing came of it.
    void unselect(request& r) noexcept;
    /// The selected buffer is used in any case, for all of r.data(), and nobody else gets it: for
    /// requests that another thread executes.
    void hold_selected(request& r) noexcept;

    /// Copies what io_uring reads at submission (paths, addresses, vectors, headers, ...), so that
    /// `r.entry` and `r.data()` no longer refer to it. To be called before another thread gets the
    /// request; after begin() the core does it for what is pending.
    void keep(request& r) noexcept;

    /// For recvmsg after it was done in r.header: gives name length, control length and flags to
    /// the caller's header. In a stream: fills the recvmsg_out in front.
    void finish_message(request& r, int payload) noexcept;

    /// Puts a file of the world's into the ring's table, which owns it from now on, also when that
    /// fails: for files that come from another ring. `file_index`: a slot counted from 1, or
    /// file_index_alloc; the slot that this found or 0, or -errno.
    int add_file(int file, std::uint32_t file_index) noexcept;

    /// To be called by the destructor of the derived class, while the world is still there: gives
    /// the table's files back. No request is begun, completed or released any more.
    void close_world() noexcept;

    /// When the first of the ring's timeouts ends, on now_ns(); `never`: there is none.
    std::int64_t next_timer_ns() const noexcept;

    /// How many requests the world has pending.
    unsigned pending_count() const noexcept;
    /// Every request that is in the world's hands, oldest first: calls `f(request&)`.
    template <class F>
    void for_each_pending(F&& f) {
        for (request* r = first_pending(); r != nullptr;) {
            request* next = next_pending(*r);
            f(*r);
            r = next;
        }
    }
    /// Calls `f(void* data, std::size_t size, bool written)` for the caller's memory that `r` owns
    /// until it is released; `written`: the kernel may write there. A buffer that select() took is
    /// among it.
    template <class F>
    static void for_each_owned(const request& r, F&& f) {
        request::owned areas[request::most_owned];
        const unsigned n = owned_by(r, areas);
        for (unsigned i = 0; i < n; ++i)
            f(areas[i].data, areas[i].size, areas[i].written);
    }
    /// The same for the buffers that the application has put into provided-buffer rings and that
    /// the kernel may write to at any time.
    unsigned provided_buffers(request::owned* areas, unsigned room) const noexcept;

private:
    friend class detail::emulation;

    request* first_pending() const noexcept;
    static request* next_pending(request& r) noexcept;
    static unsigned owned_by(const request& r, request::owned* areas) noexcept;

    std::unique_ptr<detail::emulation> core_;
};

} // namespace coil::uring
