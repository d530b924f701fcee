#include "../system_calls.hpp"
#include "emulation.hpp"

#include <cerrno>
#include <cstddef>

#include <sys/socket.h>

// Sends and receives without options are most of a server's traffic. For them this file has a fast
// path: no checks and no copies of arguments, and no request object if the data can be sent
// immediately.

namespace coil::uring::detail {

/// Whether the entry has one buffer, an ordinary descriptor and no options, so that check() would
/// accept it and copy_args() would copy nothing.
bool emulation::is_plain(const sqe& s) noexcept {
    constexpr std::uint8_t flags = sqe_flag::io_link | sqe_flag::cqe_skip_success;
    const auto op = static_cast<opcode>(s.opcode);
    return (op == opcode::send || op == opcode::recv) && (s.flags & ~flags) == 0 && s.ioprio == 0 &&
           s.off == 0 && s.buf_index == 0 && s.personality == 0 && s.file_index == 0 &&
           s.addr3 == 0 && s.pad2 == 0;
}

/// Whether no chain is open and no drain delays new entries.
bool emulation::is_alone() const noexcept {
    return open_chain_ == nullptr && !draining_ && deferred_ == nullptr && !drains_next_;
}

/// A free request object is required, because the operation continues as a request if only a part
/// of the data could be sent: an allocation could fail after that.
bool emulation::may_send_early(const sqe& s) const noexcept {
    constexpr std::uint32_t flags = MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL | MSG_MORE;
    return static_cast<opcode>(s.opcode) == opcode::send && is_plain(s) && is_alone() &&
           (s.msg_flags & ~flags) == 0 && free_ != nullptr;
}

/// Whether the entry is the last of its chain, or only one plain entry follows; then the chain is
/// known to be valid. `left` is the number of entries that follow in the submission, `next` the
/// position of the first.
bool emulation::ends_chain(const sqe& s, std::uint32_t next, unsigned left) const noexcept {
    if ((s.flags & sqe_flag::io_link) == 0) {
        return true;
    }
    if (left == 0) {
        return false;
    }
    const std::uint32_t index = sq_[sq_array + (next & (sq_entries_ - 1))];
    return index < sq_entries_ && is_plain(sqes_[index]) &&
           (sqes_[index].flags & sqe_flag::io_link) == 0;
}

/// Evaluates the result of the system call for an entry.
emulation::early_send emulation::sent_early(const sqe& s, int n) noexcept {
    if (n == -EAGAIN || n == -EINTR) {
        return {};
    }
    const bool silent = (s.flags & sqe_flag::cqe_skip_success) != 0;
    const bool links = (s.flags & sqe_flag::io_link) != 0;
    if (n >= 0 && (s.msg_flags & MSG_WAITALL) != 0 && static_cast<std::uint32_t>(n) < s.len) {
        return {.done = static_cast<std::uint32_t>(n)};
    }
    if (n < 0 && links) {
        return {.error = n}; // the chain fails
    }
    drain_disabled_ |= silent;
    if (n < 0 || !silent) {
        post(s.user_data, n, 0);
        ++completions_;
    }
    return {.complete = true};
}

/// start() for a plain request.
int emulation::begin_plain(request& r) noexcept {
    r.file = r.entry.fd;
    r.one_ = {pointer<void>(r.entry.addr), r.entry.len};
    r.parts_ = &r.one_;
    r.part_count_ = 1;
    const int result = world_.has_opcode(r.op()) ? world_.begin(r) : -EINVAL;
    if (result == emulated_backend::pending) {
        r.stage_ = stage::begun;
        ++pending_;
    }
    return result;
}

} // namespace coil::uring::detail
