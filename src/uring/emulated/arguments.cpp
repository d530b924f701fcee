#include "../opcode_kinds.hpp"
#include "../readable.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <new>

#include <sys/epoll.h>

// The memory that the arguments of a request refer to.

namespace coil::uring::detail {
namespace {

bool uses_registered_buffer(const emulated_request& r) noexcept {
    const bool chooses =
        r.op() == opcode::send || r.op() == opcode::send_zc || r.op() == opcode::sendmsg_zc;
    return has_trait(r.op(), opcode_info::fixed_buffer) ||
           (chooses && (r.entry.ioprio & recvsend_flag::fixed_buf) != 0);
}

/// Whether the iovec array of a message is readable. The header, at `header_address`, is: an array
/// on the same page needs no check of its own.
bool has_readable_vector(const ::msghdr& header, const void* header_address) noexcept {
    constexpr std::uintptr_t page_size = 4096;
    const std::size_t size = header.msg_iovlen * sizeof(::iovec);
    if (size == 0) {
        return true;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(header.msg_iov);
    const auto page = reinterpret_cast<std::uintptr_t>(header_address) / page_size;
    return (first / page_size == page && (first + size - 1) / page_size == page) ||
           is_readable(header.msg_iov, size);
}

/// Whether the layout of a multishot recvmsg (recvmsg_out, name, control data, payload) does not
/// fit in any buffer.
bool exceeds_all_buffers(const ::msghdr& header) noexcept {
    constexpr std::size_t most = INT_MAX - sizeof(recvmsg_out);
    return header.msg_namelen > most || header.msg_controllen > most - header.msg_namelen;
}

/// Whether no size is negative as an ssize_t: readv(2) and all similar calls refuse those.
bool has_valid_sizes(const ::iovec* parts, std::size_t count) noexcept {
    return std::all_of(parts, parts + count,
                       [](const ::iovec& part) { return part.iov_len <= SSIZE_MAX; });
}

/// RWF_HIPRI is only for rings that poll devices.
bool polls_device(const sqe& s) noexcept {
    constexpr std::uint32_t hipri = 1;
    const auto op = static_cast<opcode>(s.opcode);
    return (op == opcode::read_multishot ||
            (has_trait(op, opcode_info::whole) && has_trait(op, opcode_info::takes_ioprio))) &&
           (s.rw_flags & hipri) != 0;
}

/// The areas of the program's memory that a request refers to until it completes.
class area_list {
public:
    explicit area_list(emulated_request::owned* to) noexcept : to_(to) {}

    void add(const void* p, std::size_t size, bool written) noexcept {
        if (p != nullptr && size != 0 && count_ < emulated_request::max_owned) {
            to_[count_++] = {const_cast<void*>(p), size, written};
        }
    }
    void add_all(const ::iovec* parts, std::size_t count, bool written) noexcept {
        for (std::size_t i = 0; parts != nullptr && i < count; ++i) {
            add(parts[i].iov_base, parts[i].iov_len, written);
        }
    }
    [[nodiscard]] unsigned count() const noexcept { return count_; }

private:
    emulated_request::owned* to_;
    unsigned count_ = 0;
};

/// The areas of calls that move no data.
void add_call_areas(area_list& areas, opcode op, const sqe& s, bool is_multishot) noexcept {
    switch (op) {
    case opcode::accept:
        if (!is_multishot && s.addr != 0 && s.addr2 != 0) {
            areas.add(pointer<void>(s.addr), *pointer<const ::socklen_t>(s.addr2), true);
            areas.add(pointer<void>(s.addr2), sizeof(::socklen_t), true);
        }
        break;
    case opcode::statx:
        areas.add(pointer<void>(s.addr2), 256, true); // sizeof(struct statx), which is fixed
        break;
    case opcode::getxattr:
    case opcode::fgetxattr:
        areas.add(pointer<void>(s.addr2), s.len, true);
        break;
    case opcode::setxattr:
    case opcode::fsetxattr:
        areas.add(pointer<void>(s.addr2), s.len, false);
        break;
    case opcode::waitid:
        areas.add(pointer<void>(s.addr2), sizeof(::siginfo_t), true);
        break;
    case opcode::epoll_wait:
        areas.add(pointer<void>(s.addr), s.len * sizeof(::epoll_event), true);
        break;
    case opcode::pipe:
        areas.add(pointer<void>(s.addr), 2 * sizeof(int), true);
        break;
    case opcode::files_update:
        areas.add(pointer<void>(s.addr), s.len * sizeof(int), true);
        break;
    case opcode::uring_cmd:
        areas.add(pointer<void>(s.optval), s.optlen, s.cmd_op == socket_command::getsockopt);
        break;
    default:
        break;
    }
}

} // namespace

/// Whether the request's data is described by an array of iovecs.
bool emulation::is_vector(const request& r) noexcept {
    return has_trait(r.op(), opcode_info::vector) ||
           ((r.op() == opcode::send || r.op() == opcode::send_zc) &&
            (r.entry.ioprio & recvsend_flag::send_vectorized) != 0);
}

int emulation::build_fixed_iovec(const request& r, const ::iovec* parts,
                                 std::size_t n) const noexcept {
    const unsigned index = r.entry.buf_index;
    if (index >= buffers_.size() || buffers_[index].iov_base == nullptr) {
        return -EFAULT;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(buffers_[index].iov_base);
    const std::uintptr_t end = begin + buffers_[index].iov_len;
    for (std::size_t i = 0; i < n; ++i) {
        const auto from = reinterpret_cast<std::uintptr_t>(parts[i].iov_base);
        if (from < begin || from > end || parts[i].iov_len > end - from) {
            return -EFAULT;
        }
    }
    return 0;
}

/// Checks the sizes in a message's header, or of an array of iovecs. Like the next function, it
/// runs when the request begins or, in a chain, at submission.
int emulation::check_vector(const request& r) noexcept {
    if (has_message_header(r.op())) {
        if (r.header.msg_iovlen > IOV_MAX) {
            return -EMSGSIZE;
        }
        if (r.selects() && r.header.msg_iovlen > 1) {
            return -EINVAL;
        }
        return r.multishot_ && exceeds_all_buffers(r.header) ? -EOVERFLOW : 0;
    }
    return is_vector(r) && (r.entry.len > IOV_MAX || (r.selects() && r.entry.len != 1)) ? -EINVAL
                                                                                        : 0;
}

/// Determines the data areas of a request that has data.
int emulation::build_iovec(request& r) noexcept {
    const opcode op = r.op();
    const sqe& s = r.entry;
    if (polls_device(s)) {
        return -EINVAL;
    }
    if (has_message_header(op)) {
        if (!r.kept_) {
            if (!is_readable(pointer<const void>(s.addr), sizeof(::msghdr))) {
                return -EFAULT;
            }
            r.header = *pointer<const ::msghdr>(s.addr);
        }
        if (const int error = check_vector(r); error != 0) {
            return error;
        }
        if (!r.kept_ && !has_readable_vector(r.header, pointer<const void>(s.addr))) {
            return -EFAULT;
        }
        r.parts_ = r.header.msg_iov;
        r.part_count_ = static_cast<unsigned>(r.header.msg_iovlen);
        if (r.selects()) {
            r.one_ = r.part_count_ == 1 ? *r.parts_ : ::iovec{};
            r.parts_ = nullptr;
            r.part_count_ = 0;
        }
    } else if (is_vector(r)) {
        if (const int error = check_vector(r); error != 0) {
            return error;
        }
        if (!r.kept_ && !is_readable(pointer<const void>(s.addr), s.len * sizeof(::iovec))) {
            return -EFAULT;
        }
        r.parts_ = pointer<::iovec>(s.addr);
        r.part_count_ = s.len;
        if (r.selects()) {
            r.one_ = *r.parts_;
            r.parts_ = nullptr;
            r.part_count_ = 0;
        }
    } else if (has_trait(op, opcode_info::plain_buffer)) {
        r.one_ = {pointer<void>(s.addr), s.len};
        if (!r.selects()) {
            r.parts_ = &r.one_;
            r.part_count_ = 1;
        }
    } else {
        return 0;
    }
    if (!has_valid_sizes(r.parts_, r.part_count_)) {
        return -EINVAL;
    }
    return uses_registered_buffer(r) ? build_fixed_iovec(r, r.parts_, r.part_count_) : 0;
}

void emulation::finish_message(request& r, int payload) noexcept {
    if (r.multishot_) {
        if (r.selected_ == 0) {
            return;
        }
        auto& out = *static_cast<recvmsg_out*>(r.parts_[0].iov_base);
        out.namelen = r.header.msg_namelen;
        out.controllen = static_cast<std::uint32_t>(r.header.msg_controllen);
        out.payloadlen = static_cast<std::uint32_t>(payload);
        out.flags = static_cast<std::uint32_t>(r.header.msg_flags);
        return;
    }
    auto& user = *pointer<::msghdr>(r.entry.addr);
    if (user.msg_name != nullptr) {
        user.msg_namelen = r.header.msg_namelen;
    }
    user.msg_controllen = r.header.msg_controllen;
    user.msg_flags = r.header.msg_flags;
}

unsigned emulation::user_memory_of(const request& r, request::owned* areas) noexcept {
    const sqe& s = r.entry;
    area_list list(areas);
    if (r.selected_ != 0) {
        list.add_all(r.parts_, r.part_count_, r.op() != opcode::send);
    }
    switch (r.op()) {
    case opcode::read:
    case opcode::recv:
    case opcode::read_fixed:
        if (!r.selects()) {
            list.add(pointer<void>(s.addr), s.len, true);
        }
        break;
    case opcode::write:
    case opcode::write_fixed:
    case opcode::send:
    case opcode::send_zc:
        if (is_vector(r)) {
            list.add_all(pointer<const ::iovec>(s.addr), s.len, false);
        } else if (!r.selects()) {
            list.add(pointer<void>(s.addr), s.len, false);
        }
        break;
    case opcode::readv:
    case opcode::readv_fixed:
        if (!r.selects()) {
            list.add_all(pointer<const ::iovec>(s.addr), s.len, true);
        }
        break;
    case opcode::writev:
    case opcode::writev_fixed:
        list.add_all(pointer<const ::iovec>(s.addr), s.len, false);
        break;
    case opcode::sendmsg:
    case opcode::sendmsg_zc:
    case opcode::recvmsg: {
        if (s.addr == 0) {
            break;
        }
        const ::msghdr& header = r.kept_ ? r.header : *pointer<const ::msghdr>(s.addr);
        const bool in = r.op() == opcode::recvmsg;
        if (!r.selects()) {
            list.add_all(header.msg_iov, header.msg_iovlen, in);
        }
        if (!r.multishot_) {
            list.add(header.msg_control, pointer<const ::msghdr>(s.addr)->msg_controllen, in);
            if (in) {
                list.add(header.msg_name, pointer<const ::msghdr>(s.addr)->msg_namelen, true);
                list.add(pointer<void>(s.addr), sizeof(::msghdr), true);
            }
        }
        break;
    }
    default:
        add_call_areas(list, r.op(), s, r.multishot_);
        break;
    }
    return list.count();
}

} // namespace coil::uring::detail
