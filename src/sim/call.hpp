#pragma once

#include "object.hpp"

#include <coil/uring/abi.hpp>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::sim::detail {

class file;

/// Returned by op::attempt() if the call has to wait.
inline constexpr int would_wait = INT_MIN + 1;

/// The pointer stored in a field of an entry.
template <class T>
T* pointer(std::uint64_t address) noexcept {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}
inline const char* text(std::uint64_t address) noexcept { return pointer<const char>(address); }

/// Whether the operation transfers bytes to the caller's memory.
constexpr bool receives(uring::opcode op) noexcept {
    using uring::opcode;
    return op == opcode::read || op == opcode::readv || op == opcode::read_fixed ||
           op == opcode::recv || op == opcode::recvmsg;
}

/// A call that waits for a file or the word of a futex to change.
class waiter : public list_link {
public:
    virtual void try_again() noexcept = 0;

protected:
    waiter() noexcept = default;
    ~waiter() = default;
};

/// One attempt of a call: its arguments, independent of their source.
struct op {
    const uring::sqe& entry;
    std::span<::iovec> data{}; // the memory to transfer from or to
    ::msghdr* header = nullptr;
    std::uint32_t* done = nullptr;           // bytes transferred before (MSG_WAITALL)
    bool* begun = nullptr;                   // connect: an earlier attempt began the handshake
    bool* truncated = nullptr;               // a receive: whether a datagram did not fit
    class buffer_chooser* chooser = nullptr; // selects a provided buffer, which then becomes `data`

    [[nodiscard]] uring::opcode code() const noexcept {
        return static_cast<uring::opcode>(entry.opcode);
    }
    [[nodiscard]] std::size_t size() const noexcept {
        std::size_t sum = 0;
        for (const ::iovec& part : data) {
            sum += part.iov_len;
        }
        return sum;
    }
};

/// Selects one of a ring's provided buffers when data is available.
class buffer_chooser {
public:
    /// 0 with `data` set, or -ENOBUFS.
    virtual int choose(op& call) noexcept = 0;

protected:
    ~buffer_chooser() = default;
};

} // namespace coil::sim::detail
