#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/base/std_memory.hpp>
#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coil::uring {

/// The backend of a ring. The ring's hot path touches only memory laid out as the io_uring ABI
/// defines; the calls below are the only difference between the Linux kernel and its substitutes (a
/// user-space emulation, a simulation). A ring calls `enter` once per batch, never once per entry,
/// so virtual calls are affordable here.
///
/// One object serves one ring. Threading: calls come from the ring's thread; the destructor may run
/// on any thread.
class backend {
public:
    /// The shared memory. It stays valid, at these addresses, as long as the backend object lives.
    /// `params::sq_off` and `params::cq_off` are the offsets of the words.
    struct mapping {
        void* sq;
        void* cq;
        sqe* sqes;
    };

    backend() = default;
    backend(const backend&) = delete;
    backend& operator=(const backend&) = delete;

    /// Closes the ring. Does not wait for operations in flight, which may still write to their
    /// buffers for a moment. Cancel and drain first.
    virtual ~backend() = default;

    /// io_uring_setup(2): a ring of `entries` entries, described in `p` and mapped in `m`. Returns
    /// 0 or -errno. After a failure it may be called again with other parameters; never after a
    /// success.
    virtual int setup(unsigned entries, params& p, mapping& m) noexcept = 0;

    /// io_uring_enter(2): consumes up to `to_submit` published entries. With enter_flag::getevents
    /// it then posts what is complete and waits for `min_complete` completions. `arg` is a
    /// getevents_arg if `flags` has enter_flag::ext_arg, otherwise null. Returns the number of
    /// entries consumed, or -errno. An error of the wait is reported only if no entry was consumed
    /// and the completion queue is empty.
    virtual int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
                      std::size_t arg_size) noexcept = 0;

    /// io_uring_register(2): its result, or -errno. Two operations have a special meaning if `arg`
    /// is null: register_op::ring_fds registers the ring's descriptor for the calling thread, which
    /// makes its calls faster (-EBUSY: it is registered for another thread);
    /// register_op::unregister_ring_fds undoes that. Both return 0 if there is nothing to do.
    /// register_op::query may be called before setup().
    virtual int do_register(register_op op, void* arg, unsigned count) noexcept = 0;

    /// Executes `request` synchronously, without the ring: for constructors and destructors, and
    /// for calls that io_uring lacks (perform.hpp). Returns what a completion would report: a value
    /// >= 0 or -errno; -EOPNOTSUPP for requests that cannot be executed this way. Never waits for
    /// a peer. The default makes the plain system call; a backend with files of its own overrides
    /// it. May be called on any thread that may use the ring; if has_own_world() is false, on every
    /// thread.
    virtual int perform(const sqe& request) noexcept;

    /// Whether the backend has files, sockets and processes of its own (a simulation), so that no
    /// request for it may reach Linux. Its descriptors are numbers from first_world_descriptor on.
    virtual bool has_own_world() const noexcept { return false; }

    /// The clock of this backend's timeouts; virtual time in a simulation.
    virtual std::chrono::steady_clock::time_point now() noexcept = 0;

    /// The ring's descriptor, or -1 if it has none.
    virtual int native_handle() const noexcept = 0;

    /// Whether completions may appear in the queue while no thread is inside enter(). If not,
    /// polling the shared memory is useless.
    virtual bool posts_asynchronously() const noexcept { return true; }

    /// A short name for logs: "io_uring".
    virtual std::string_view name() const noexcept = 0;

    /// Lets one thread call io_uring_enter(2) directly instead of the virtual enter(), with `ring`
    /// as the descriptor and `flags` added. `thread` is that thread's detail::thread_number, or 0
    /// while there is no shortcut; other threads call enter(). Only the Linux backend has a
    /// shortcut.
    struct shortcut {
        std::uint64_t thread = 0;
        int ring = -1;
        std::uint32_t flags = 0;
    };

    const shortcut& direct() const noexcept { return direct_; }

protected:
    shortcut direct_;
};

/// The backend that makes io_uring's system calls. The first thread that enters also registers the
/// ring's descriptor for itself if the kernel supports it, which saves a descriptor look-up per
/// call; other threads use the descriptor. A registration keeps the ring alive until its thread
/// ends or unregisters it. If the ring is to be destroyed on another thread while the first one
/// continues to run, the first thread must call `do_register(register_op::unregister_ring_fds,
/// nullptr, 0)` before that.
std::unique_ptr<backend> make_linux_backend();

} // namespace coil::uring
