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

// The memory that the arguments of a request refer to.

namespace coil::uring::detail {
namespace {

bool is_vector(const emulated_request& r) noexcept {
    return has_trait(r.op(), opcode_info::vector) ||
           ((r.op() == opcode::send || r.op() == opcode::send_zc) &&
            (r.entry.ioprio & recvsend_flag::send_vectorized) != 0);
}

bool uses_registered_buffer(const emulated_request& r) noexcept {
    const bool chooses =
        r.op() == opcode::send || r.op() == opcode::send_zc || r.op() == opcode::sendmsg_zc;
    return has_trait(r.op(), opcode_info::fixed_buffer) ||
           (chooses && (r.entry.ioprio & recvsend_flag::fixed_buf) != 0);
}

/// Memory that io_uring reads at submission.
struct piece {
    std::uint64_t* where;
    std::size_t size;
};

class pieces {
public:
    void add(std::uint64_t& where, std::size_t size) noexcept {
        if (where == 0 || size == 0) {
            return;
        }
        bad_ |= !is_readable(pointer<const void>(where), size);
        list_[count_++] = {&where, size};
    }
    void add_text(std::uint64_t& where) noexcept {
        if (where == 0) {
            return;
        }
        const std::size_t size = readable_text(pointer<const char>(where));
        bad_ |= size == 0;
        list_[count_++] = {&where, size};
    }
    /// Whether some of it cannot be read.
    bool bad() const noexcept { return bad_; }
    const piece* begin() const noexcept { return list_; }
    const piece* end() const noexcept { return list_ + count_; }
    bool empty() const noexcept { return count_ == 0; }

private:
    piece list_[3]{};
    unsigned count_ = 0;
    bool bad_ = false;
};

constexpr std::size_t aligned(std::size_t n) noexcept { return (n + 15) & ~std::size_t{15}; }

} // namespace

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

/// Determines the data areas of a request that has data.
int emulation::build_iovec(request& r) noexcept {
    const opcode op = r.op();
    const sqe& s = r.entry;
    if (has_message_header(op)) {
        if (!r.kept_) {
            if (!is_readable(pointer<const void>(s.addr), sizeof(::msghdr))) {
                return -EFAULT;
            }
            r.header = *pointer<const ::msghdr>(s.addr);
        }
        if (r.header.msg_iovlen > IOV_MAX) {
            return -EMSGSIZE;
        }
        r.parts_ = r.header.msg_iov;
        r.part_count_ = static_cast<unsigned>(r.header.msg_iovlen);
        if (r.selects()) {
            if (r.part_count_ > 1) {
                return -EINVAL;
            }
            r.one_ = r.part_count_ == 1 && !r.multishot_ ? *r.parts_ : ::iovec{};
            r.parts_ = nullptr;
            r.part_count_ = 0;
        }
    } else if (is_vector(r)) {
        if (s.len > IOV_MAX) {
            return -EINVAL;
        }
        if (!r.kept_ && !is_readable(pointer<const void>(s.addr), s.len * sizeof(::iovec))) {
            return -EFAULT;
        }
        r.parts_ = pointer<::iovec>(s.addr);
        r.part_count_ = s.len;
        if (r.selects()) {
            if (s.len != 1) {
                return -EINVAL;
            }
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
    return uses_registered_buffer(r) ? build_fixed_iovec(r, r.parts_, r.part_count_) : 0;
}

void emulation::copy_args(request& r) noexcept {
    const unsigned copies = info_of(r.op()).copies;
    if (r.kept_ || copies == 0) {
        return; // all of its memory lives until completion
    }
    sqe& s = r.entry;
    pieces wanted;
    std::uint64_t vector = 0; // a message's iovec array
    std::uint64_t name = 0;
    const std::size_t vector_size = std::min<std::size_t>(s.len, IOV_MAX) * sizeof(::iovec);
    if ((copies & opcode_info::text_in_addr) != 0) {
        wanted.add_text(s.addr);
    }
    if ((copies & opcode_info::text_in_addr2) != 0) {
        wanted.add_text(s.addr2);
    }
    if ((copies & opcode_info::text_in_addr3) != 0) {
        wanted.add_text(s.addr3);
    }
    if ((copies & opcode_info::iovecs) != 0) {
        wanted.add(s.addr, vector_size);
    }
    if ((copies & opcode_info::name) != 0) {
        wanted.add(s.addr, std::min<std::uint64_t>(s.off, sizeof(::sockaddr_storage)));
    }
    if ((copies & opcode_info::message) != 0) {
        if (!is_readable(pointer<const void>(s.addr), sizeof(::msghdr))) {
            r.early_result_ = -EFAULT;
            return;
        }
        r.header = *pointer<const ::msghdr>(s.addr);
        vector = reinterpret_cast<std::uintptr_t>(r.header.msg_iov);
        wanted.add(vector, std::min<std::size_t>(r.header.msg_iovlen, IOV_MAX) * sizeof(::iovec));
        if (r.op() != opcode::recvmsg) {
            name = reinterpret_cast<std::uintptr_t>(r.header.msg_name);
            wanted.add(name, r.header.msg_namelen);
        }
    }
    switch (r.op()) {
    case opcode::send:
    case opcode::send_zc:
        if (is_vector(r)) {
            wanted.add(s.addr, vector_size);
        }
        if (s.addr_len != 0) {
            wanted.add(s.addr2, s.addr_len);
        }
        break;
    case opcode::epoll_ctl:
        wanted.add(s.addr, 12);
        break;
    case opcode::futex_waitv:
        wanted.add(s.addr, std::min<std::size_t>(s.len, 128) * sizeof(futex_waiter));
        break;
    case opcode::openat2:
        wanted.add(s.addr2, std::min<std::size_t>(s.len, 4096));
        break;
    default:
        break;
    }
    if (wanted.bad()) {
        r.early_result_ = -EFAULT;
        return;
    }
    r.kept_ = true;
    if (wanted.empty()) {
        return;
    }
    std::size_t size = 0;
    for (const piece& p : wanted) {
        size += aligned(p.size);
    }
    if (size > r.copies_size_) {
        std::unique_ptr<std::byte[]> memory{new (std::nothrow) std::byte[size]};
        if (memory == nullptr) {
            r.early_result_ = -ENOMEM; // if it has not begun yet
            return;
        }
        r.copies_ = std::move(memory);
        r.copies_size_ = size;
    }
    std::byte* to = r.copies_.get();
    for (const piece& p : wanted) {
        std::memcpy(to, pointer<const void>(*p.where), p.size);
        if (p.size == PATH_MAX + 1) {
            to[PATH_MAX] = std::byte{0}; // a string that is too long remains too long
        }
        *p.where = reinterpret_cast<std::uintptr_t>(to);
        to += aligned(p.size);
    }
    if (has_message_header(r.op())) {
        r.header.msg_iov = pointer<::iovec>(vector);
        if (name != 0) {
            r.header.msg_name = pointer<void>(name);
        }
        if (r.parts_ != nullptr && r.selected_ == 0) {
            r.parts_ = r.header.msg_iov;
        }
    } else if (is_vector(r) && r.parts_ != nullptr && r.selected_ == 0) {
        r.parts_ = pointer<::iovec>(s.addr);
    }
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
    unsigned n = 0;
    const auto add = [&](const void* p, std::size_t size, bool written) {
        if (p != nullptr && size != 0 && n < request::max_owned) {
            areas[n++] = {const_cast<void*>(p), size, written};
        }
    };
    const auto add_all = [&](const ::iovec* parts, std::size_t count, bool written) {
        for (std::size_t i = 0; parts != nullptr && i < count; ++i) {
            add(parts[i].iov_base, parts[i].iov_len, written);
        }
    };
    if (r.selected_ != 0) {
        add_all(r.parts_, r.part_count_, r.op() != opcode::send);
    }
    switch (r.op()) {
    case opcode::read:
    case opcode::recv:
    case opcode::read_fixed:
        if (!r.selects()) {
            add(pointer<void>(s.addr), s.len, true);
        }
        break;
    case opcode::write:
    case opcode::write_fixed:
    case opcode::send:
    case opcode::send_zc:
        if (is_vector(r)) {
            add_all(pointer<const ::iovec>(s.addr), s.len, false);
        } else if (!r.selects()) {
            add(pointer<void>(s.addr), s.len, false);
        }
        break;
    case opcode::readv:
    case opcode::readv_fixed:
        if (!r.selects()) {
            add_all(pointer<const ::iovec>(s.addr), s.len, true);
        }
        break;
    case opcode::writev:
    case opcode::writev_fixed:
        add_all(pointer<const ::iovec>(s.addr), s.len, false);
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
            add_all(header.msg_iov, header.msg_iovlen, in);
        }
        if (!r.multishot_) {
            add(header.msg_control, pointer<const ::msghdr>(s.addr)->msg_controllen, in);
            if (in) {
                add(header.msg_name, pointer<const ::msghdr>(s.addr)->msg_namelen, true);
                add(pointer<void>(s.addr), sizeof(::msghdr), true);
            }
        }
        break;
    }
    case opcode::accept:
        if (!r.multishot_ && s.addr != 0 && s.addr2 != 0) {
            add(pointer<void>(s.addr), *pointer<const ::socklen_t>(s.addr2), true);
            add(pointer<void>(s.addr2), sizeof(::socklen_t), true);
        }
        break;
    case opcode::statx:
        add(pointer<void>(s.addr2), 256, true); // sizeof(struct statx), which is fixed
        break;
    case opcode::getxattr:
    case opcode::fgetxattr:
        add(pointer<void>(s.addr2), s.len, true);
        break;
    case opcode::setxattr:
    case opcode::fsetxattr:
        add(pointer<void>(s.addr2), s.len, false);
        break;
    case opcode::waitid:
        add(pointer<void>(s.addr2), sizeof(::siginfo_t), true);
        break;
    case opcode::epoll_wait:
        add(pointer<void>(s.addr), std::size_t{s.len} * 12, true);
        break;
    case opcode::pipe:
        add(pointer<void>(s.addr), 2 * sizeof(int), true);
        break;
    case opcode::files_update:
        add(pointer<void>(s.addr), s.len * sizeof(int), true);
        break;
    case opcode::uring_cmd:
        add(pointer<void>(s.optval), s.optlen, s.cmd_op == socket_command::getsockopt);
        break;
    default:
        break;
    }
    return n;
}

} // namespace coil::uring::detail
