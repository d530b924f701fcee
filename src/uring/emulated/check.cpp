#include "../opcode_table.hpp"
#include "../readable.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>

// Checks of an entry that Linux makes at submission and that do not depend on the derived class.

namespace coil::uring::detail {
namespace {

/// The fields that are not zero, as bits of opcode_info::zero.
unsigned used_fields(const sqe& s) noexcept {
    using i = opcode_info;
    const auto bit = [](bool used, unsigned field) { return used ? field : 0U; };
    return bit(s.off != 0, i::off) | bit(s.addr != 0, i::addr) | bit(s.len != 0, i::len) |
           bit(s.rw_flags != 0, i::op_flags) | bit(s.buf_index != 0, i::buf_index) |
           bit(s.file_index != 0, i::last_word) | bit(s.addr3 != 0, i::addr3) |
           bit(s.fd != 0, i::fd) | bit(s.pad2 != 0, i::pad2);
}

/// A part of the entry that has no name of its own.
template <class T>
T field_at(const sqe& s, std::size_t offset) noexcept {
    T value{};
    std::memcpy(&value, reinterpret_cast<const std::byte*>(&s) + offset, sizeof value);
    return value;
}

/// Linux's ioprio_check_cap() for a process that may use the real-time class.
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

/// Checks operations that may be multishot.
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
        if ((s.len & ~poll_flag::add_multi) != 0 || // Linux refuses add_level, too
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
        if (r.has(sqe_flag::cqe_skip_success)) {
            return -EINVAL;
        }
        r.notifies_ = true;
        if ((s.ioprio & ~known) != 0) {
            // The notification that follows does not report the usage.
            r.entry.ioprio &= static_cast<std::uint16_t>(~recvsend_flag::zc_report_usage);
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
    constexpr std::size_t behind_addr_len = offsetof(sqe, addr_len) + sizeof s.addr_len;
    return field_at<std::uint16_t>(s, behind_addr_len) != 0 ? -EINVAL : 0;
}

/// Checks the fields that all commands have in common.
int emulation::check_command(const request& r) noexcept {
    constexpr std::uint32_t fixed = 1U << 0;     // IORING_URING_CMD_FIXED
    constexpr std::uint32_t multishot = 1U << 1; // IORING_URING_CMD_MULTISHOT
    const sqe& s = r.entry;
    const std::uint32_t flags = s.uring_cmd_flags;
    const bool repeats = (flags & multishot) != 0;
    constexpr std::size_t behind_cmd_op = offsetof(sqe, cmd_op) + sizeof s.cmd_op;
    return field_at<std::uint32_t>(s, behind_cmd_op) != 0 || (flags & ~(fixed | multishot)) != 0 ||
                   repeats != r.selects() || (repeats && (flags & fixed) != 0)
               ? -EINVAL
               : 0;
}

int emulation::check_provided(const sqe& s) noexcept {
    constexpr unsigned most = 1U << 16;
    if (s.fd <= 0 || static_cast<unsigned>(s.fd) > most) {
        return -E2BIG;
    }
    if (s.len == 0) {
        return -EINVAL;
    }
    const auto count = static_cast<std::uint64_t>(s.fd);
    std::uint64_t end = 0;
    if (__builtin_add_overflow(s.addr, count * s.len, &end)) {
        return -EOVERFLOW;
    }
    if (end > UINT64_MAX / 2) { // the kernel's half of the addresses
        return -EFAULT;
    }
    if (s.off >= most) {
        return -E2BIG;
    }
    return s.off + count > most ? -EINVAL : 0;
}

int emulation::check_futex(const sqe& s) noexcept {
    constexpr std::uint32_t known = futex_flag::size_u32 | futex_flag::private_;
    const auto flags = static_cast<std::uint32_t>(s.fd);
    return (flags & ~known) != 0 || (flags & futex_flag::size_u32) == 0 || s.off > UINT32_MAX ||
                   s.addr3 > UINT32_MAX
               ? -EINVAL
               : 0;
}

/// Checks operations that the core executes, and messages to rings.
int emulation::check_core(const sqe& s) noexcept {
    const auto invalid = [](bool is) { return is ? -EINVAL : 0; };
    switch (static_cast<opcode>(s.opcode)) {
    case opcode::nop: {
        constexpr std::uint32_t known = nop_flag::inject_result | nop_flag::file |
                                        nop_flag::fixed_file | nop_flag::fixed_buffer |
                                        nop_flag::tw;
        return invalid((s.nop_flags & ~known) != 0);
    }
    case opcode::async_cancel: {
        constexpr std::uint32_t known = cancel_flag::all | cancel_flag::fd | cancel_flag::any |
                                        cancel_flag::fd_fixed | cancel_flag::userdata |
                                        cancel_flag::op;
        const bool chooses = (s.cancel_flags & (cancel_flag::fd | cancel_flag::op)) != 0;
        return invalid((s.cancel_flags & ~known) != 0 ||
                       ((s.cancel_flags & cancel_flag::any) != 0 && chooses));
    }
    case opcode::poll_remove: {
        constexpr std::uint32_t updates = poll_flag::update_events | poll_flag::update_user_data;
        return invalid((s.len & ~(updates | poll_flag::add_multi)) != 0 ||
                       s.len == poll_flag::add_multi ||
                       ((s.len & poll_flag::update_user_data) == 0 && s.off != 0) ||
                       ((s.len & poll_flag::update_events) == 0 && s.poll32_events != 0));
    }
    case opcode::files_update:
        return invalid(s.len == 0);
    case opcode::provide_buffers:
        return check_provided(s);
    case opcode::remove_buffers:
        return invalid(s.fd <= 0 || s.fd > 1 << 16);
    case opcode::close:
        return invalid(s.file_index != 0 && s.fd != 0);
    case opcode::msg_ring:
        return invalid(
            (s.msg_ring_flags & ~(msg_ring_flag::cqe_skip | msg_ring_flag::flags_pass)) != 0);
    default:
        return 0;
    }
}

/// Checks the operation's own flags, and stores in the request what it needs of them.
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
    case opcode::setxattr:
    case opcode::fsetxattr:
        return (s.xattr_flags & ~3U) != 0 ? -EINVAL : 0; // XATTR_CREATE, XATTR_REPLACE
    case opcode::futex_wait:
    case opcode::futex_wake:
        return check_futex(s);
    case opcode::futex_waitv:
        if (s.len == 0 || s.len > 128) {
            return -EINVAL;
        }
        return is_readable(pointer<const void>(s.addr), s.len * sizeof(futex_waiter)) ? 0 : -EFAULT;
    case opcode::socket: {
        constexpr std::uint32_t types = 0xf; // SOCK_TYPE_MASK
        constexpr std::uint32_t known = types | SOCK_CLOEXEC | SOCK_NONBLOCK;
        return (static_cast<std::uint32_t>(s.off) & ~known) != 0 ? -EINVAL : 0;
    }
    case opcode::openat2:
        return s.len < sizeof(std::uint64_t) * 3 ? -EINVAL : 0;
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
    case opcode::uring_cmd:
        return check_command(r);
    case opcode::async_cancel:
        if (r.has(sqe_flag::fixed_file)) {
            r.entry.cancel_flags |= cancel_flag::fd_fixed; // has a meaning with cancel_flag::fd
        }
        return check_core(s);
    default:
        return check_core(s);
    }
    return 0;
}

/// The error of an entry, or 0.
int emulation::check(request& r) noexcept {
    const sqe& s = r.entry;
    const opcode op = r.op();
    if (s.opcode >= opcode_count || (s.flags & ~all_sqe_flags) != 0) {
        return -EINVAL;
    }
    const opcode_info& known_info = info_of(op);
    if (r.selects() && (known_info.traits & opcode_info::takes_buffer) == 0) {
        return -EOPNOTSUPP;
    }
    if ((known_info.traits & opcode_info::by_core) == 0 && !world_.has_opcode(op)) {
        return -EINVAL;
    }
    // A drain cannot wait for completions that are not posted.
    drain_disabled_ |= r.has(sqe_flag::cqe_skip_success);
    if (drain_disabled_ && r.has(sqe_flag::io_drain)) {
        return -EOPNOTSUPP;
    }
    if (s.personality != 0 ||
        (s.ioprio != 0 && (known_info.traits & opcode_info::takes_ioprio) == 0)) {
        return -EINVAL;
    }
    if ((used_fields(s) & known_info.zero) != 0) {
        return -EINVAL;
    }
    if (r.has(sqe_flag::fixed_file)) {
        if ((known_info.traits & opcode_info::path) != 0) {
            return -EBADF;
        }
        if ((known_info.traits & opcode_info::no_fixed_file) != 0) {
            return -EINVAL;
        }
    }
    const bool is_rw = (known_info.traits & opcode_info::whole) != 0 &&
                       (known_info.traits & opcode_info::takes_ioprio) != 0;
    if (is_rw && !is_priority(s.ioprio)) {
        return -EINVAL;
    }
    // The attributes of reads and writes are not supported.
    if (is_rw && s.attr_type_mask != 0) {
        return -EINVAL;
    }
    if (op == opcode::timeout || op == opcode::link_timeout) {
        return check_timeout(r);
    }
    if (op == opcode::timeout_remove) {
        return check_timeout_remove(r);
    }
    if (const int error = check_flags(r); error != 0) {
        return error;
    }
    return makes_both_direct_and_cloexec(s) ? -EINVAL : 0;
}

} // namespace coil::uring::detail
