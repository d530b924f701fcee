#pragma once

#include <coil/base/owned.hpp>
#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::uring {

namespace detail {
class emulation;
struct emulated_file;
} // namespace detail

/// A submission of an emulated_backend, from its consumption to its last completion. Derived
/// classes may extend it (emulated_backend::make_request). They own the members from `world` on. Of
/// those above it, they may set only `result_flags` and the results in `header`.
class emulated_request {
public:
    emulated_request() = default;
    emulated_request(const emulated_request&) = delete;
    emulated_request& operator=(const emulated_request&) = delete;
    virtual ~emulated_request() = default;

    /// The submission. `fd` is the application's value; see `file`.
    sqe entry{};

    /// The descriptor that `entry.fd` names, directly or through the table. A file of the table
    /// stays open as long as the request lives. -1: none.
    int file = -1;
    /// splice and tee: the same for `entry.splice_fd_in`.
    int file_in = -1;

    opcode op() const noexcept { return static_cast<opcode>(entry.opcode); }
    bool has(std::uint8_t flag) const noexcept { return (entry.flags & flag) != 0; }
    /// Whether the request posts results until it is cancelled.
    bool multishot() const noexcept { return multishot_; }
    /// Whether the request follows another one in a chain and has no link timeout. io_uring starts
    /// such a request in task work, shortly after its predecessor has ended.
    bool follows() const noexcept { return follows_ && limit_ == nullptr; }
    /// Whether copy_args() has copied the arguments.
    bool kept() const noexcept { return kept_; }
    /// The error found before or by copy_args() (an invalid argument, -EFAULT, -ENOMEM), or 0. It
    /// replaces every other result.
    int early_result() const noexcept { return early_result_; }
    /// Whether the operation uses buffers of its group.
    bool selects() const noexcept { return (entry.flags & sqe_flag::buffer_select) != 0; }

    /// The data of a read, write, send or receive of any kind: the buffer, the parts of the vector,
    /// or the buffers reserved by select(); never more than IOV_MAX parts.
    std::span<::iovec> data() noexcept;
    std::span<const ::iovec> data() const noexcept;

    /// With select(): whether `bytes` use up all buffers of the group, which ends a bundle or a
    /// multishot request of bundles.
    bool empties_group(std::size_t bytes) const noexcept {
        if (!empties_group_) {
            return false;
        }
        for (unsigned i = 0; i + 1 < part_count_; ++i) {
            bytes -= bytes < parts_[i].iov_len ? bytes : parts_[i].iov_len;
        }
        return group_grows_ ? bytes >= parts_[part_count_ - 1].iov_len : bytes != 0;
    }
    /// Whether the first message that a recvmsg finds completes it, in spite of MSG_WAITALL: there
    /// is space for control data, which the next message would overwrite. A short result is then no
    /// failure.
    bool ends_with_message() const noexcept {
        return op() == opcode::recvmsg && header.msg_controllen != 0;
    }
    /// Whether a send or recv may use several buffers of the group together.
    bool bundles() const noexcept { return bundles_; }

    /// sendmsg, recvmsg: the header for the system call, with the caller's name and control areas
    /// and data(). In a multishot request with select() they lie in the buffer.
    ::msghdr header{};

    /// Flags of the last completion, in addition to those passed to complete()
    /// (cqe_flag::sock_nonempty).
    std::uint32_t result_flags = 0;

    // ---- Owned by derived classes.

    /// Zero when begin() is called; for any use by the derived class.
    std::uint64_t world = 0;
    /// The bytes transferred so far if more are to come (MSG_WAITALL). Zero when begin() is called,
    /// unless a part was sent immediately (may_send_now()). complete() does not add it to the
    /// result.
    std::uint32_t done = 0;
    /// A receive with MSG_WAITALL: whether a message or its control data did not fit, which breaks
    /// a chain as a short result does. False when begin() is called.
    bool truncated = false;
    /// Links for lists of the derived class; null when begin() is called.
    emulated_request* world_next = nullptr;
    emulated_request* world_previous = nullptr;

    /// An area of the application's memory.
    struct owned {
        void* data;
        std::size_t size;
        bool written;
    };
    static constexpr unsigned max_owned = 1032;

private:
    friend class emulated_backend;
    friend class detail::emulation;

    enum class stage : std::uint8_t {
        held,    // consumed; waits behind a link, a drain, or another request
        begun,   // pending in the derived class
        timed,   // a timeout, handled by the base class
        leaving, // cancel() returned `later`
    };

    ::iovec* parts_ = nullptr;
    unsigned part_count_ = 0;
    stage stage_ = stage::held;
    bool plain_ = false; // a send or recv without options
    bool multishot_ = false;
    bool bundles_ = false;
    bool empties_group_ = false;
    bool group_grows_ = false; // incremental ring: the rest of a buffer stays in the group
    bool kept_ = false;
    bool listed_ = false;   // in the list of cancellable requests
    bool limits_ = false;   // a link timeout that is armed
    bool follows_ = false;  // in a chain, but not its first request
    bool taken_ = false;    // the reserved buffer has left the group's queue; result_flags name it
    bool notifies_ = false; // a zero-copy send, whose notification is posted whatever its result
    unsigned selected_ = 0; // the number of buffers reserved by select()
    std::uint16_t buffer_id_ = 0;
    int early_result_ = 0; // the error that prevents the start
    ::iovec one_{};        // the buffer named by the entry
    ::iovec chosen_{};     // the buffer reserved by select()

    emulated_request* next_ = nullptr; // list of cancellable requests, in order
    emulated_request* previous_ = nullptr;
    emulated_request* same_hash_ = nullptr;
    emulated_request* link_ = nullptr;    // the next request of its chain
    emulated_request* queued_ = nullptr;  // the next request that is due, deferred or free
    emulated_request* limit_ = nullptr;   // its link timeout
    emulated_request* limited_ = nullptr; // a link timeout: the request that it limits
    detail::emulated_file* held_file_ = nullptr;
    detail::emulated_file* held_file_in_ = nullptr;
    std::int64_t deadline_ = 0;  // a timeout: on the clock of now_ns()
    std::int64_t period_ = 0;    // a multishot timeout: its interval; otherwise 0
    std::int64_t wall_ = 0;      // a timeout on a settable clock: its expiry there
    std::uint64_t target_ = 0;   // a timeout with a count: the completion that ends it
    std::uint64_t ticks_ = 0;    // a multishot timeout: the remaining ticks, 0 for no limit
    std::size_t heap_index_ = 0; // counted from 1; 0: not in the heap
    std::vector<::iovec> bundle_;
    coil::detail::owned<std::byte[]> copies_;
    std::size_t copies_size_ = 0;
};

} // namespace coil::uring
