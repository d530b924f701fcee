#pragma once

#include <coil/uring/abi.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace coil::uring {

/// Who is on the other side of a ring. The ring's hot path touches only memory laid out as the
/// io_uring ABI says; the three calls below are all that differs between the Linux kernel and
/// whatever stands in for it (a user-space emulation, a model for tests). A ring calls `enter` once
/// per batch, never once per entry, so these may be virtual.
///
/// One object serves one ring. Calls come from the ring's thread; the destructor may run on any.
class kernel {
public:
    /// The memory both sides share. It stays valid, at these addresses, as long as the kernel
    /// object lives. `params::sq_off` and `params::cq_off` say where the words are.
    struct mapping {
        void* sq;
        void* cq;
        sqe* sqes;
    };

    kernel() = default;
    kernel(const kernel&) = delete;
    kernel& operator=(const kernel&) = delete;

    /// Closes the ring. That is no fence: what the ring still has in flight may go on writing into
    /// its buffers for a moment. Cancel and drain first.
    virtual ~kernel() = default;

    /// io_uring_setup(2): a ring of `entries` entries, described in `p` and mapped in `m`.
    /// Returns 0 or -errno. Called again, with other parameters, only after it failed.
    virtual int setup(unsigned entries, params& p, mapping& m) noexcept = 0;

    /// io_uring_enter(2): consumes up to `to_submit` published entries, then, with
    /// enter_flag::getevents, posts what is complete and waits for `min_complete` completions.
    /// `arg` is a getevents_arg when `flags` has enter_flag::ext_arg, else null. Returns how many
    /// entries were consumed, or -errno; an error of the wait shows only when none was consumed and
    /// the completion queue is empty.
    virtual int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
                      std::size_t arg_size) noexcept = 0;

    /// io_uring_register(2): its result or -errno. Two operations have a meaning of their own when
    /// `arg` is null: register_op::ring_fds lets this thread reach the ring faster from now on,
    /// register_op::unregister_ring_fds ends that. Both then return 0 where nothing is to be done.
    virtual int control(register_op op, void* arg, unsigned count) noexcept = 0;

    /// Does at once what `request` asks for, beside the ring: the calls of constructors and
    /// destructors, and those that io_uring lacks (perform.hpp). As a completion's result: a value
    /// >= 0 or -errno; -EOPNOTSUPP for what cannot be done that way. It does not wait for other
    /// parties. The plain system call, where a kernel has no world of its own. Any thread may call
    /// it that may use the ring, and with Linux's world every thread.
    virtual int perform(const sqe& request) noexcept;

    /// Whether its files, sockets and processes are its own (a simulation), so that nothing that is
    /// done for it may reach Linux's. Its descriptors are numbers from first_world_descriptor on.
    virtual bool has_own_world() const noexcept { return false; }

    /// The clock that this world's timeouts follow; virtual time in a simulation.
    virtual std::chrono::steady_clock::time_point now() noexcept = 0;

    /// The ring's descriptor, or -1 where there is none.
    virtual int native_handle() const noexcept = 0;

    /// Whether completions may appear in the queue while nobody is inside enter(). Where they do
    /// not it is of no use to look at memory until something comes.
    virtual bool completes_by_itself() const noexcept { return true; }

    /// A short name for logs: "io_uring".
    virtual std::string_view name() const noexcept = 0;

    /// How one thread may enter without asking this object: the system call itself, on `ring`, with
    /// `flags` added. `thread` is that thread's detail::thread_number, 0 where there is no shortcut
    /// (yet); a ring on any other thread calls enter(). Only a kernel that is the running Linux
    /// kernel has one.
    struct shortcut {
        std::uint64_t thread = 0;
        int ring = -1;
        std::uint32_t flags = 0;
    };

    const shortcut& direct() const noexcept { return direct_; }

protected:
    shortcut direct_;
};

/// The running Linux kernel, by system calls. The first thread that enters also registers the
/// ring's descriptor with itself, where the kernel offers that, which saves a descriptor look-up
/// per call; other threads enter by the descriptor. A registration keeps the ring alive until its
/// thread ends or unregisters it: to destroy the ring on another thread while the first lives on,
/// first call `control(register_op::unregister_ring_fds, nullptr, 0)` on the first.
std::unique_ptr<kernel> make_linux_kernel();

} // namespace coil::uring
