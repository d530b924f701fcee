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

/// What op::attempt() gives when the call has to wait.
inline constexpr int would_wait = INT_MIN + 1;

/// What an entry's field names.
template <class T>
T* pointer(std::uint64_t address) noexcept {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}
inline const char* text(std::uint64_t address) noexcept { return pointer<const char>(address); }

/// Moves bytes into the caller's memory, which it names.
constexpr bool receives(uring::opcode op) noexcept {
    using uring::opcode;
    return op == opcode::read || op == opcode::readv || op == opcode::read_fixed ||
           op == opcode::recv || op == opcode::recvmsg;
}

/// Whoever waits for a file to change.
class waiter : public list_link {
public:
    virtual void try_again() noexcept = 0;

protected:
    waiter() noexcept = default;
    ~waiter() = default;
};

/// One try of a call: its arguments, wherever they come from.
struct op {
    const uring::sqe& entry;
    std::span<::iovec> data{}; // where the bytes come from or go to
    ::msghdr* header = nullptr;
    std::uint32_t* done = nullptr;           // bytes that were moved before (MSG_WAITALL)
    bool* begun = nullptr;                   // connect: an earlier try began the hand-shake
    class buffer_chooser* chooser = nullptr; // takes a provided buffer, which is then `data`

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

/// Takes one of a ring's provided buffers, at the moment in which there is something to put in it.
class buffer_chooser {
public:
    /// 0, and `data` is set; or -ENOBUFS.
    virtual int choose(op& call) noexcept = 0;

protected:
    ~buffer_chooser() = default;
};

} // namespace coil::sim::detail
