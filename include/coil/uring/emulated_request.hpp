#pragma once

#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::uring {

namespace detail {
class emulation;
struct emulated_file;
struct emulated_group;
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
    /// The way of an operation that takes one of the group's buffers.
    bool selects() const noexcept { return (entry.flags & sqe_flag::buffer_select) != 0; }

    /// Where the data of a read, write, send or receive of any kind lies: the buffer, the vector's
    /// parts, or what select() took; never more than IOV_MAX parts.
    std::span<::iovec> data() noexcept { return {parts_, part_count_}; }
    std::span<const ::iovec> data() const noexcept { return {parts_, part_count_}; }

    /// sendmsg, recvmsg: the header to pass to the system call: name and control as the caller gave
    /// them, data(). In a stream with select(): they lie in the buffer.
    ::msghdr header{};

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
        unused,
        held,    // behind a link or a drain
        due,     // its turn has come; begins as soon as the world has returned
        begun,   // in the world
        timed,   // a timeout, in the core
        leaving, // its cancellation is under way
    };

    ::iovec* parts_ = nullptr;
    unsigned part_count_ = 0;
    stage stage_ = stage::unused;
    bool multishot_ = false;
    bool kept_ = false;
    bool cancelled_ = false; // before it could begin
    bool sure_to_fail_ = false;
    bool taken_ = false; // the selected buffers have left the group's ring
    std::uint16_t buffer_id_ = 0;
    int early_result_ = 0; // wrong arguments of a chain's member
    ::iovec one_{};

    emulated_request* next_ = nullptr; // of all, in submission order
    emulated_request* previous_ = nullptr;
    emulated_request* same_hash_ = nullptr;
    emulated_request* link_ = nullptr;  // the next of its chain
    emulated_request* head_ = nullptr;  // link timeout: whom it limits
    emulated_request* limit_ = nullptr; // its link timeout
    emulated_request* next_due_ = nullptr;
    detail::emulated_file* held_file_ = nullptr;
    detail::emulated_file* held_file_in_ = nullptr;
    detail::emulated_group* group_ = nullptr;
    std::uint64_t sequence_ = 0; // in submission order
    std::int64_t deadline_ = 0;  // of a timeout
    std::int64_t period_ = 0;
    std::uint64_t target_ = 0; // a timeout with a count: at how many completions
    std::size_t heap_index_ = 0;
    std::unique_ptr<std::byte[]> copies_;
    std::size_t copies_size_ = 0;
    std::unique_ptr<::iovec[]> vector_;
    std::size_t vector_size_ = 0;
};

} // namespace coil::uring
