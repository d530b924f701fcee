// The calls of a host's programs, from any ring.

#include "datagram.hpp"
#include "machine.hpp"
#include "open_file.hpp"
#include "pipe.hpp"
#include "stream.hpp"

#include <cerrno>
#include <type_traits>
#include <utility>

#include <fcntl.h>

namespace coil::sim::detail {

namespace {

using uring::opcode;

constexpr int socket_type_mask = 0xf;

} // namespace

bool machine::asks_disk(opcode op, const file* f) noexcept {
    switch (op) {
    case opcode::openat:
    case opcode::openat2:
    case opcode::statx:
    case opcode::unlinkat:
    case opcode::renameat:
    case opcode::mkdirat:
    case opcode::symlinkat:
    case opcode::linkat:
    case opcode::getxattr:
    case opcode::setxattr:
    case opcode::fallocate:
    case opcode::ftruncate:
    case opcode::fsync:
    case opcode::sync_file_range:
        return true;
    default:
        return f != nullptr && f->is == file::kind::on_disk;
    }
}

int machine::attempt(op& call, file* f, file* f_in) {
    if (!up) {
        return -EIO;
    }
    switch (call.code()) {
    case opcode::socket:
        return make_socket(call.entry);
    case opcode::pipe:
        return make_pipe(call.entry);
    case opcode::close:
        return close(call.entry.fd);
    case opcode::madvise:
        return 0;
    case opcode::futex_wake:
        return futex_wake(call.entry);
    case opcode::epoll_ctl:
        return epoll_ctl(call.entry);
    case opcode::waitid:
        return -ECHILD;
    case opcode::openat:
    case opcode::openat2:
    case opcode::statx:
    case opcode::mkdirat:
    case opcode::unlinkat:
    case opcode::renameat:
    case opcode::symlinkat:
    case opcode::linkat:
        return attempt_names(call);
    case opcode::getxattr:
    case opcode::fgetxattr:
        return get_xattr(call);
    case opcode::setxattr:
    case opcode::fsetxattr:
        return world.fault(world.options.faults.io_error, "EIO") ? -EIO : set_xattr(call);
    default:
        break;
    }
    if (f == nullptr || f->is_path()) {
        return -EBADF;
    }
    switch (call.code()) {
    case opcode::poll_add:
        return poll(call, f);
    case opcode::epoll_wait:
        return f->is == file::kind::epoll_set ? f->attempt(call) : -EINVAL;
    case opcode::msg_ring:
        return send_message(call.entry);
    case opcode::splice:
    case opcode::tee:
        return splice(call, f, f_in);
    case opcode::bind:
    case opcode::listen:
    case opcode::accept:
    case opcode::connect:
    case opcode::shutdown:
    case opcode::send:
    case opcode::sendmsg:
    case opcode::send_zc:
    case opcode::sendmsg_zc:
    case opcode::recv:
    case opcode::recvmsg:
    case opcode::uring_cmd:
        if (f->is != file::kind::socket) {
            return call.code() == opcode::uring_cmd ? -EOPNOTSUPP : -ENOTSOCK;
        }
        break;
    default:
        break;
    }
    return f->attempt(call);
}

int machine::make_socket(const uring::sqe& entry) {
    const int family = entry.fd;
    const auto flags = static_cast<int>(entry.off);
    const int type = flags & socket_type_mask;
    if ((flags & ~(socket_type_mask | SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0) {
        return -EINVAL;
    }
    if (family != AF_INET && family != AF_INET6 && family != AF_UNIX) {
        return -EAFNOSUPPORT;
    }
    if (type != SOCK_STREAM && type != SOCK_DGRAM) {
        return -ESOCKTNOSUPPORT;
    }
    if (const int error = descriptor_fault(); error != 0) {
        return error;
    }
    ref<file> made;
    if (type == SOCK_STREAM) {
        made = ref<file>(make<stream_socket>(*this, family));
    } else {
        made = ref<file>(make<datagram_socket>(*this, family));
    }
    made->nonblocking = (flags & SOCK_NONBLOCK) != 0;
    return open(made);
}

std::pair<int, int> machine::make_socket_pair(int type) {
    const auto both = [this](const auto& a, const auto& b) {
        std::remove_reference_t<decltype(*a)>::join(*a, *b);
        const int first = open(ref<file>(a));
        return std::pair(first, open(ref<file>(b)));
    };
    if ((type & socket_type_mask) == SOCK_STREAM) {
        return both(make<stream_socket>(*this, AF_UNIX), make<stream_socket>(*this, AF_UNIX));
    }
    return both(make<datagram_socket>(*this, AF_UNIX), make<datagram_socket>(*this, AF_UNIX));
}

/// socketpair(2).
int machine::socket_pair(const uring::sqe& entry) {
    const auto type = static_cast<int>(entry.len);
    const int kind = type & socket_type_mask;
    if (entry.fd != AF_UNIX) {
        return -EAFNOSUPPORT;
    }
    if (kind != SOCK_STREAM && kind != SOCK_DGRAM) {
        return -ESOCKTNOSUPPORT;
    }
    if (const int error = descriptor_fault(); error != 0) {
        return error;
    }
    const auto [a, b] = make_socket_pair(type);
    if (a < 0 || b < 0) {
        static_cast<void>(a < 0 ? 0 : close(a));
        return a < 0 ? a : b;
    }
    for (const int fd : {a, b}) {
        get(fd)->nonblocking = (type & SOCK_NONBLOCK) != 0;
    }
    auto* const fds = pointer<int>(entry.addr);
    fds[0] = a;
    fds[1] = b;
    return 0;
}

int machine::make_pipe(const uring::sqe& entry) {
    if ((entry.pipe_flags & ~unsigned{O_CLOEXEC | O_NONBLOCK}) != 0) {
        return -EINVAL;
    }
    if (const int error = descriptor_fault(); error != 0) {
        return error;
    }
    const auto [reader, writer] = pipe_end::make_pair(*this);
    reader->nonblocking = writer->nonblocking = (entry.pipe_flags & O_NONBLOCK) != 0;
    int* const out = pointer<int>(entry.addr);
    const int in = open(ref<file>(reader));
    if (in < 0) {
        return in;
    }
    const int second = open(ref<file>(writer));
    if (second < 0) {
        close(in);
        return second;
    }
    out[0] = in;
    out[1] = second;
    return 0;
}

int machine::poll(op& call, file* f) {
    // As in io_uring, these are always reported.
    const std::uint32_t wanted = call.entry.poll32_events | POLLERR | POLLHUP | POLLRDHUP;
    const std::uint32_t there = f->events() & wanted;
    return there != 0 ? static_cast<int>(there) : would_wait;
}

int machine::splice(op& call, file* out, file* in) {
    constexpr std::uint64_t here = ~std::uint64_t{0};
    const uring::sqe& entry = call.entry;
    auto* const to = dynamic_cast<pipe_end*>(out);
    auto* const from = dynamic_cast<pipe_end*>(in);
    if (in == nullptr || !in->reads() || !out->writes()) {
        return -EBADF;
    }
    if ((to == nullptr && from == nullptr) ||
        (call.code() == opcode::tee && (to == nullptr || from == nullptr))) {
        return -EINVAL;
    }
    const bool positioned = call.code() == opcode::splice;
    if (positioned &&
        ((from != nullptr && entry.addr != here) || (to != nullptr && entry.off != here))) {
        return -ESPIPE;
    }
    file& other = to == nullptr ? *out : *in; // if both are pipes, one of them
    const bool other_has_offset = to == nullptr ? entry.off != here : entry.addr != here;
    const auto* const opened = dynamic_cast<const open_file*>(&other);
    if ((positioned && other.is == file::kind::socket && other_has_offset) ||
        (opened != nullptr &&
         (opened->node->is_directory() || (to == nullptr && opened->appends())))) {
        return -EINVAL;
    }
    int result = 0;
    if (to != nullptr && from != nullptr) {
        result = pipe_end::move(*from, *to, entry.len, call.code() == opcode::tee);
    } else if (to != nullptr) {
        result = to->fill_from(*in, entry.addr, entry.len);
    } else {
        result = from->drain_to(*out, entry.off, entry.len);
    }
    return result == would_wait && (entry.splice_flags & SPLICE_F_NONBLOCK) != 0 ? -EAGAIN : result;
}

namespace {

/// The error of a call that would have to wait. A TCP connect has begun by then (-EINPROGRESS); on
/// AF_UNIX it has not, because the listener's queue is full.
int error_instead_of_waiting(const op& call, const file* f) noexcept {
    const auto* const s = dynamic_cast<const socket_file*>(f);
    return call.code() == opcode::connect && s != nullptr && s->family() != AF_UNIX ? -EINPROGRESS
                                                                                    : -EAGAIN;
}

/// Sets the data of a call that transfers bytes. `one` holds a single buffer.
void find_data(op& call, ::iovec& one) noexcept {
    const uring::sqe& entry = call.entry;
    switch (call.code()) {
    case opcode::read:
    case opcode::write:
    case opcode::recv:
    case opcode::send:
        one = {pointer<void>(entry.addr), entry.len};
        call.data = {&one, 1};
        break;
    case opcode::readv:
    case opcode::writev:
        call.data = {pointer<::iovec>(entry.addr), entry.len};
        break;
    default:
        break;
    }
}

} // namespace

/// Performs a synchronous call. Returns -EAGAIN, or -EINPROGRESS for a connect, if it would have to
/// wait.
int machine::perform(const uring::sqe& entry) {
    ++world.operations;
    op call{.entry = entry};
    ::iovec one{};
    find_data(call, one);
    int result = 0;
    switch (static_cast<uring::call_opcode>(entry.opcode)) {
    case uring::call_opcode::getdents64:
    case uring::call_opcode::lseek: {
        file* const f = up ? get(entry.fd) : nullptr;
        auto* const opened = dynamic_cast<open_file*>(f);
        result = f == nullptr || f->is_path() ? -EBADF
                 : opened != nullptr          ? opened->perform(entry)
                                              : -ESPIPE;
        break;
    }
    case uring::call_opcode::readlinkat:
        result = read_link(entry);
        break;
    case uring::call_opcode::faccessat:
        result = access(entry);
        break;
    case uring::call_opcode::fchmod:
    case uring::call_opcode::fchmodat:
    case uring::call_opcode::fchownat:
    case uring::call_opcode::utimensat:
        result = set_attributes(entry);
        break;
    case uring::call_opcode::statvfs:
        result = space(entry);
        break;
    case uring::call_opcode::socketpair:
        result = socket_pair(entry);
        break;
    case uring::call_opcode::epoll_create1:
    case uring::call_opcode::eventfd:
    case uring::call_opcode::timerfd_create:
    case uring::call_opcode::timerfd_settime:
        result = event_file(entry);
        break;
    default:
        if (call.code() == opcode::uring_cmd &&
            entry.cmd_op == uring::socket_command::getsockname) {
            auto* const s = dynamic_cast<socket_file*>(get(entry.fd));
            result = s == nullptr ? (get(entry.fd) == nullptr ? -EBADF : -ENOTSOCK)
                                  : s->get_name(entry.optlen != 0, pointer<void>(entry.addr),
                                                pointer<::socklen_t>(entry.optval));
        } else {
            const ref<file> keep(get(entry.fd));
            result = attempt(call, keep.get(), get(entry.splice_fd_in));
            if (call.code() == opcode::uring_cmd && result == -EOPNOTSUPP && keep != nullptr &&
                keep->is != file::kind::socket) {
                result = -ENOTSOCK; // like the system call
            }
            if (result == would_wait) {
                result = error_instead_of_waiting(call, keep.get());
            }
        }
    }
    world.trace.call(tracer::kind::direct, index, 0, entry.opcode, entry.fd, entry.len, 0, result);
    return result;
}

} // namespace coil::sim::detail
