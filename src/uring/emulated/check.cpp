#include "../opcode_table.hpp"
#include "../readable.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>

// Checks of an entry that Linux makes at submission and that do not depend on the derived class.

namespace coil::uring::detail {
namespace {

constexpr std::uint8_t all_flags = 0x7f;

/// The fields that are not zero, as bits of opcode_info::zero.
unsigned used_fields(const sqe& s) noexcept {
    using i = opcode_info;
    const auto bit = [](bool used, unsigned field) { return used ? field : 0U; };
    return bit(s.off != 0, i::off) | bit(s.addr != 0, i::addr) | bit(s.len != 0, i::len) |
           bit(s.rw_flags != 0, i::op_flags) | bit(s.buf_index != 0, i::buf_index) |
           bit(s.file_index != 0, i::last_word) | bit(s.addr3 != 0, i::addr3) |
           bit(s.fd != 0, i::fd) | bit(s.pad2 != 0, i::pad2);
}

/// Linux's ioprio_check_cap() for an unprivileged process.
bool is_priority(unsigned ioprio) noexcept {
    const unsigned level = ioprio & 7;
    switch (ioprio >> 13) {
    case 0:
        return level == 0;
    case 1: // real time
    case 2: // best effort
    case 3: // idle
        return true;
    default:
        return false;
    }
}

/// Only its ring can close a direct descriptor, so close-on-exec has no meaning for it.
bool makes_both_direct_and_cloexec(const sqe& s) noexcept {
    if (s.file_index == 0) {
        return false;
    }
    constexpr std::uint32_t cloexec = 02000000; // O_CLOEXEC, SOCK_CLOEXEC
    switch (static_cast<opcode>(s.opcode)) {
    case opcode::accept:
    case opcode::openat:
    case opcode::pipe:
        return (s.open_flags & cloexec) != 0;
    case opcode::openat2:
        return s.len >= sizeof(std::uint64_t) && s.addr2 != 0 &&
               is_readable(pointer<const void>(s.addr2), sizeof(std::uint64_t)) &&
               (*pointer<const std::uint64_t>(s.addr2) & cloexec) != 0;
    case opcode::socket:
        return (s.off & cloexec) != 0;
    default:
        return false;
    }
}

} // namespace

/// Operations that may be multishot.
int emulation::check_repeatable(request& r) noexcept {
    const sqe& s = r.entry;
    const opcode op = r.op();
    switch (op) {
    case opcode::accept: {
        constexpr unsigned known =
            accept_flag::multishot | accept_flag::dontwait | accept_flag::poll_first;
        if ((s.ioprio & ~known) != 0 ||
            (s.accept_flags & ~static_cast<unsigned>(SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0) {
            return -EINVAL;
        }
        r.multishot_ = (s.ioprio & accept_flag::multishot) != 0;
        if (r.multishot_ && s.file_index != 0 && s.file_index != file_index_alloc) {
            return -EINVAL;
        }
        break;
    }
    case opcode::recv:
    case opcode::recvmsg:
        r.multishot_ = (s.ioprio & recvsend_flag::recv_multishot) != 0;
        if ((s.ioprio & ~(recvsend_flag::poll_first | recvsend_flag::recv_multishot |
                          recvsend_flag::bundle)) != 0) {
            return -EINVAL;
        }
        if (r.multishot_ && (!r.selects() || (s.msg_flags & MSG_WAITALL) != 0)) {
            return -EINVAL;
        }
        r.bundles_ = (s.ioprio & recvsend_flag::bundle) != 0 && r.selects();
        if (((s.ioprio & recvsend_flag::bundle) != 0 && op == opcode::recvmsg) ||
            (!r.multishot_ && s.optlen != 0)) {
            return -EINVAL;
        }
        break;
    case opcode::read_multishot:
        r.multishot_ = true;
        if (!r.selects()) {
            return -EINVAL;
        }
        break;
    case opcode::poll_add:
        r.multishot_ = (s.len & poll_flag::add_multi) != 0;
        if ((s.len & ~(poll_flag::add_multi | poll_flag::add_level)) != 0 ||
            (r.multishot_ && r.has(sqe_flag::cqe_skip_success))) {
            return -EINVAL;
        }
        break;
    default:
        break;
    }
    return 0;
}

int emulation::check_send(request& r) noexcept {
    const sqe& s = r.entry;
    const opcode op = r.op();
    switch (op) {
    case opcode::send_zc:
    case opcode::sendmsg_zc: {
        constexpr unsigned known = recvsend_flag::poll_first | recvsend_flag::fixed_buf |
                                   recvsend_flag::zc_report_usage | recvsend_flag::send_vectorized;
        if (r.has(sqe_flag::cqe_skip_success) || (s.ioprio & ~known) != 0) {
            return -EINVAL;
        }
        break;
    }
    case opcode::send:
    case opcode::sendmsg: {
        constexpr unsigned known =
            recvsend_flag::poll_first | recvsend_flag::bundle | recvsend_flag::send_vectorized;
        if ((s.ioprio & ~known) != 0) {
            return -EINVAL;
        }
        if ((s.ioprio & recvsend_flag::bundle) != 0) {
            if (op == opcode::sendmsg) {
                return -EINVAL;
            }
            r.bundles_ = r.selects();
            r.entry.msg_flags |= MSG_WAITALL; // a bundle is sent completely
        }
        break;
    }
    default:
        break;
    }
    return 0;
}

/// The operation's own flags; sets what the request keeps of them.
int emulation::check_flags(request& r) noexcept {
    const sqe& s = r.entry;
    switch (r.op()) {
    case opcode::fsync:
        if ((s.fsync_flags & ~fsync_flag::datasync) != 0) {
            return -EINVAL;
        }
        break;
    case opcode::splice:
    case opcode::tee: {
        constexpr std::uint32_t known =
            splice_flag::fd_in_fixed |
            static_cast<std::uint32_t>(SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE |
                                       SPLICE_F_GIFT);
        if ((s.splice_flags & ~known) != 0) {
            return -EINVAL;
        }
        break;
    }
    case opcode::unlinkat:
        if ((s.unlink_flags & ~static_cast<std::uint32_t>(AT_REMOVEDIR)) != 0) {
            return -EINVAL;
        }
        break;
    case opcode::futex_waitv:
        if (s.len == 0 || s.len > 128) {
            return -EINVAL;
        }
        break;
    case opcode::accept:
    case opcode::recv:
    case opcode::recvmsg:
    case opcode::read_multishot:
    case opcode::poll_add:
        return check_repeatable(r);
    case opcode::send:
    case opcode::sendmsg:
    case opcode::send_zc:
    case opcode::sendmsg_zc:
        return check_send(r);
    default:
        break;
    }
    return 0;
}

/// The error of an entry, or 0.
int emulation::check(request& r) noexcept {
    const sqe& s = r.entry;
    const opcode op = r.op();
    if (s.opcode >= opcode_count || (s.flags & ~all_flags) != 0) {
        return -EINVAL;
    }
    const opcode_info& known_info = info_of(op);
    if (r.selects() && (known_info.traits & opcode_info::takes_buffer) == 0) {
        return -EOPNOTSUPP;
    }
    if (s.personality != 0 ||
        (s.ioprio != 0 && (known_info.traits & opcode_info::takes_ioprio) == 0)) {
        return -EINVAL;
    }
    if ((used_fields(s) & known_info.zero) != 0) {
        return -EINVAL;
    }
    if ((known_info.traits & opcode_info::whole) != 0 && !is_priority(s.ioprio)) {
        return -EINVAL;
    }
    if (op == opcode::timeout || op == opcode::link_timeout) {
        return check_timeout(r);
    }
    if (const int error = check_flags(r); error != 0) {
        return error;
    }
    return makes_both_direct_and_cloexec(s) ? -EINVAL : 0;
}

} // namespace coil::uring::detail
