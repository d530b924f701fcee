#pragma once

#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::uring {

namespace detail {
class emulation;
struct emulated_file;
} // namespace detail

/// A submission in the hands of an emulated_kernel, from the moment in which it was consumed to its
/// last completion. A world may derive from it (emulated_kernel::make_request). The members above
/// `world` are for it to read, those from there on are its own.
class emulated_request {
public:
    emulated_request() = default;
    emulated_request(const emulated_request&) = delete;
    emulated_request& operator=(const emulated_request&) = delete;
    virtual ~emulated_request() = default;

    /// What was asked for. `fd` is as the application wrote it: see `file`.
    sqe entry{};

    /// The descriptor of the world's that `entry.fd` names, directly or by the table; what a table
    /// held stays open as long as the request lives. -1: none.
    int file = -1;
    /// splice and tee: the same for `entry.splice_fd_in`.
    int file_in = -1;

    opcode op() const noexcept { return static_cast<opcode>(entry.opcode); }
    bool has(std::uint8_t flag) const noexcept { return (entry.flags & flag) != 0; }
    /// A stream of results, until it is told to end.
    bool multishot() const noexcept { return multishot_; }
    /// In a chain, behind another, and without a link timeout: io_uring starts it in task work, a
    /// moment after the one before it ended.
    bool follows() const noexcept { return follows_ && limit_ == nullptr; }
    /// keep() has copied its arguments.
    bool kept() const noexcept { return kept_; }
    /// Why it cannot be done, when keep() found out: -EFAULT, -ENOMEM. It overrules every result.
    int early_result() const noexcept { return early_result_; }
    /// The way of an operation that takes one of the group's buffers.
    bool selects() const noexcept { return (entry.flags & sqe_flag::buffer_select) != 0; }

    /// Where the data of a read, write, send or receive of any kind lies: the buffer, the vector's
    /// parts, or what select() took; never more than IOV_MAX parts.
    std::span<::iovec> data() noexcept { return {parts_, part_count_}; }
    std::span<const ::iovec> data() const noexcept { return {parts_, part_count_}; }

    /// With select(): whether `bytes` use up all that the group has. A bundle or a stream of
    /// bundles ends with them.
    bool empties_group(std::size_t bytes) const noexcept {
        if (!empties_group_)
            return false;
        for (unsigned i = 0; i + 1 < part_count_; ++i)
            bytes -= bytes < parts_[i].iov_len ? bytes : parts_[i].iov_len;
        return group_grows_ ? bytes >= parts_[part_count_ - 1].iov_len : bytes != 0;
    }
    /// A send or recv that may use several buffers of the group at once.
    bool bundles() const noexcept { return bundles_; }

    /// sendmsg, recvmsg: the header to pass to the system call: name and control as the caller gave
    /// them, data(). In a stream with select(): they lie in the buffer.
    ::msghdr header{};

    /// Flags for the completion, for when begin() returns the result (cqe_flag::sock_nonempty).
    std::uint32_t result_flags = 0;

    // ---- the world's

    /// Zero when the request is begun; for what the world likes.
    std::uint64_t world = 0;
    /// Zero when the request is begun: bytes that have been moved so far, when more are to come
    /// (MSG_WAITALL). complete() does not add it.
    std::uint32_t done = 0;
    /// Links for the world's lists; null when it is begun.
    emulated_request* world_next = nullptr;
    emulated_request* world_previous = nullptr;

    /// Memory of the application's.
    struct owned {
        void* data;
        std::size_t size;
        bool written;
    };
    static constexpr unsigned most_owned = 1032;

private:
    friend class emulated_kernel;
    friend class detail::emulation;

    enum class stage : std::uint8_t {
        held,    // consumed; behind a link, a drain, or whoever runs now
        begun,   // the world has it
        timed,   // a timeout, which the core has
        leaving, // cancel() said that it will end
    };

    ::iovec* parts_ = nullptr;
    unsigned part_count_ = 0;
    stage stage_ = stage::held;
    bool multishot_ = false;
    bool bundles_ = false;
    bool empties_group_ = false;
    bool group_grows_ = false; // an incremental one: what is left of a buffer stays
    bool kept_ = false;
    bool listed_ = false;   // among those that can be cancelled
    bool limits_ = false;   // a link timeout whose time runs
    bool follows_ = false;  // in a chain, behind another
    bool taken_ = false;    // the selected buffer has left the group's queue: result_flags say it
    unsigned selected_ = 0; // how many buffers select() took hold of
    std::uint16_t buffer_id_ = 0;
    int early_result_ = 0; // why it cannot begin
    ::iovec one_{};        // the buffer that the entry names
    ::iovec chosen_{};     // and what select() took

    emulated_request* next_ = nullptr; // of the listed ones, in order
    emulated_request* previous_ = nullptr;
    emulated_request* same_hash_ = nullptr;
    emulated_request* link_ = nullptr;    // the next of its chain
    emulated_request* queued_ = nullptr;  // the next that is due, deferred or free
    emulated_request* limit_ = nullptr;   // its link timeout
    emulated_request* limited_ = nullptr; // of a link timeout: whom it limits
    detail::emulated_file* held_file_ = nullptr;
    detail::emulated_file* held_file_in_ = nullptr;
    std::int64_t deadline_ = 0;  // of a timeout, on now_ns()
    std::int64_t period_ = 0;    // and of a stream of them: 0 for none
    std::int64_t wall_ = 0;      // and of one on a clock that can be set: its time there
    std::uint64_t target_ = 0;   // and of one with a count: the completion that ends it
    std::uint64_t ticks_ = 0;    // and of a stream: how many are left, 0 for ever
    std::size_t heap_index_ = 0; // counted from 1; 0: not in the heap
    std::vector<::iovec> bundle_;
    std::unique_ptr<std::byte[]> copies_;
    std::size_t copies_size_ = 0;
};

} // namespace coil::uring
