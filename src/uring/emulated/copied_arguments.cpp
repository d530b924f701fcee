#include "../opcode_kinds.hpp"
#include "../opcode_table.hpp"
#include "../readable.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <new>

#include <fcntl.h>
#include <sys/epoll.h>

// The memory that io_uring reads at submission, which the program may reuse afterwards: a request
// that does not complete immediately gets copies.

namespace coil::uring::detail {
namespace {

constexpr std::size_t aligned(std::size_t n) noexcept { return (n + 15) & ~std::size_t{15}; }

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
        if (!is_readable(pointer<const void>(where), size)) {
            fail(-EFAULT);
        }
        list_[count_++] = {&where, size};
    }
    /// `if_empty`: the error of an empty string, or 0.
    void add_text(std::uint64_t& where, int if_empty) noexcept {
        if (where == 0) {
            fail(if_empty != 0 ? -EFAULT : 0);
            return;
        }
        const std::size_t size = readable_text(pointer<const char>(where));
        if (size <= 1) {
            fail(size == 0 ? -EFAULT : if_empty);
        }
        list_[count_++] = {&where, size};
    }
    /// The first error, or 0: something cannot be read, or a string is empty.
    int error() const noexcept { return error_; }
    bool empty() const noexcept { return count_ == 0; }
    /// The space that the copies take.
    std::size_t size() const noexcept {
        std::size_t all = 0;
        for (unsigned i = 0; i < count_; ++i) {
            all += aligned(list_[i].size);
        }
        return all;
    }
    /// Copies the memory, and redirects the pointers to the copies.
    void copy_to(std::byte* to) const noexcept {
        for (unsigned i = 0; i < count_; ++i) {
            const piece& p = list_[i];
            std::memcpy(to, pointer<const void>(*p.where), p.size);
            if (p.size == PATH_MAX + 1) {
                to[PATH_MAX] = std::byte{0}; // a string that is too long remains too long
            }
            *p.where = reinterpret_cast<std::uintptr_t>(to);
            to += aligned(p.size);
        }
    }

private:
    void fail(int error) noexcept { error_ = error_ != 0 ? error_ : error; }

    piece list_[3]{};
    unsigned count_ = 0;
    int error_ = 0;
};

std::size_t vector_size(std::uint64_t parts) noexcept {
    return std::min<std::size_t>(parts, IOV_MAX) * sizeof(::iovec);
}

/// The error of an empty string in `addr`: the name of an attribute, a path that may be empty, or
/// another path.
int error_of_empty(const sqe& s) noexcept {
    switch (static_cast<opcode>(s.opcode)) {
    case opcode::getxattr:
    case opcode::setxattr:
    case opcode::fgetxattr:
    case opcode::fsetxattr:
        return -ERANGE;
    case opcode::statx: // the flags of linkat share this union member
    case opcode::linkat:
        return (s.statx_flags & AT_EMPTY_PATH) != 0 ? 0 : -ENOENT;
    default:
        return -ENOENT;
    }
}

/// Adds what the opcode table lists for the operation.
void add_arguments(unsigned copies, sqe& s, pieces& wanted) noexcept {
    if ((copies & opcode_info::text_in_addr) != 0) {
        wanted.add_text(s.addr, error_of_empty(s));
    }
    if ((copies & opcode_info::text_in_addr2) != 0) {
        wanted.add_text(s.addr2, -ENOENT);
    }
    if ((copies & opcode_info::text_in_addr3) != 0) {
        wanted.add_text(s.addr3, -ENOENT);
    }
    if ((copies & opcode_info::iovecs) != 0) {
        wanted.add(s.addr, vector_size(s.len));
    }
    if ((copies & opcode_info::name) != 0) {
        wanted.add(s.addr, std::min<std::uint64_t>(s.off, sizeof(::sockaddr_storage)));
    }
}

/// Adds the arguments of the operations that the table marks as `special`.
void add_special_arguments(opcode op, bool is_vector, sqe& s, pieces& wanted) noexcept {
    switch (op) {
    case opcode::send:
    case opcode::send_zc:
        if (is_vector) {
            wanted.add(s.addr, vector_size(s.len));
        }
        if (s.addr_len != 0) {
            wanted.add(s.addr2, s.addr_len);
        }
        break;
    case opcode::epoll_ctl:
        wanted.add(s.addr, sizeof(::epoll_event));
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
}

} // namespace

void emulation::copy_args(request& r) noexcept {
    const unsigned copies = info_of(r.op()).copies;
    if (r.kept_ || copies == 0) {
        return; // copied already, or nothing is read at submission
    }
    sqe& s = r.entry;
    pieces wanted;
    std::uint64_t vector = 0; // a message's iovec array
    std::uint64_t name = 0;
    add_arguments(copies, s, wanted);
    if ((copies & opcode_info::message) != 0) {
        if (!is_readable(pointer<const void>(s.addr), sizeof(::msghdr))) {
            r.early_result_ = -EFAULT;
            return;
        }
        r.header = *pointer<const ::msghdr>(s.addr);
        vector = reinterpret_cast<std::uintptr_t>(r.header.msg_iov);
        wanted.add(vector, vector_size(r.header.msg_iovlen));
        if (r.op() != opcode::recvmsg) {
            name = reinterpret_cast<std::uintptr_t>(r.header.msg_name);
            wanted.add(name, r.header.msg_namelen);
        }
    }
    add_special_arguments(r.op(), is_vector(r), s, wanted);
    int error = check_vector(r);
    if (error == 0) {
        error = wanted.error();
    }
    if (error != 0) {
        r.early_result_ = error;
        return;
    }
    if (wanted.empty()) {
        r.kept_ = true;
        return;
    }
    if (const std::size_t size = wanted.size(); size > r.copies_size_) {
        coil::detail::owned<std::byte[]> memory(new (std::nothrow) std::byte[size]);
        if (!memory) {
            r.early_result_ = -ENOMEM;
            return;
        }
        r.copies_ = std::move(memory);
        r.copies_size_ = size;
    }
    wanted.copy_to(r.copies_.get());
    r.kept_ = true;
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

} // namespace coil::uring::detail
