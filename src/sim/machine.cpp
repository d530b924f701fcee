#include "machine.hpp"

#include "datagram.hpp"
#include "network.hpp"
#include "open_file.hpp"
#include "pipe.hpp"
#include "stream.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include <fcntl.h>

namespace coil::sim::detail {

namespace {

using uring::opcode;

template <class T>
T* pointer(std::uint64_t address) noexcept {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

constexpr int socket_type_mask = 0xf;

} // namespace

file::file(machine& of, kind what) noexcept : home(of), is(what), number(of.next_file_number()) {}

machine::machine(engine& w, network& n, std::uint32_t number, std::string called)
    : world(w), net(n), index(number), name(std::move(called)), files(w, w.options.disk.capacity) {
    world.trace.name_host(index, name);
    net.add(*this);
}

machine::~machine() {
    up = false;
    descriptors_.clear();
    held_.clear();
}

void machine::lose_power() {
    world.trace.event("loses power", index);
    up = false;
    net.forget_connections(*this);
    descriptors_.clear();
    free_.clear();
    held_.clear();
    names_.clear();
    files.crash();
}

void machine::start() {
    if (!up) {
        up = true;
        ++life;
        world.trace.event("starts", index, life);
    }
}

// ---- descriptors
// -------------------------------------------------------------------------------

int machine::open(ref<file> f, int least) {
    if (!up) {
        return -EIO;
    }
    static_cast<void>(least);
    if (!free_.empty()) {
        const int slot = *free_.begin();
        free_.erase(free_.begin());
        descriptors_[static_cast<std::size_t>(slot)] = std::move(f);
        return first_descriptor + slot;
    }
    if (descriptors_.size() >= world.options.descriptors) {
        return -EMFILE;
    }
    descriptors_.push_back(std::move(f));
    return first_descriptor + static_cast<int>(descriptors_.size()) - 1;
}

file* machine::get(int fd) const noexcept {
    if (fd >= first_held) [[unlikely]] {
        const auto found = held_.find(fd);
        return found == held_.end() ? nullptr : found->second.get();
    }
    const auto slot = static_cast<std::size_t>(fd - first_descriptor);
    return fd >= first_descriptor && slot < descriptors_.size() ? descriptors_[slot].get()
                                                                : nullptr;
}

int machine::close(int fd) {
    if (fd >= first_held) {
        return held_.erase(fd) != 0 ? 0 : -EBADF;
    }
    if (get(fd) == nullptr) {
        return -EBADF;
    }
    const int slot = fd - first_descriptor;
    const ref<file> last = std::exchange(descriptors_[static_cast<std::size_t>(slot)], {});
    free_.insert(slot);
    return 0;
}

int machine::hold(int fd) {
    file* const f = get(fd);
    if (f == nullptr) {
        return -EBADF;
    }
    held_.emplace(next_held_, ref<file>(f));
    return next_held_++;
}

int machine::descriptor_fault() {
    return world.fault(world.options.faults.no_descriptors, "EMFILE") ? -EMFILE : 0;
}

std::vector<int> machine::open_descriptors() const {
    std::vector<int> all;
    for (std::size_t i = 0; i < descriptors_.size(); ++i) {
        if (descriptors_[i]) {
            all.push_back(first_descriptor + static_cast<int>(i));
        }
    }
    return all;
}

// ---- calls
// -------------------------------------------------------------------------------------

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
    case opcode::setxattr:
    case opcode::fgetxattr:
    case opcode::fsetxattr:
        return -EOPNOTSUPP;
    default:
        break;
    }
    if (f == nullptr) {
        return -EBADF;
    }
    switch (call.code()) {
    case opcode::poll_add:
        return poll(call, f);
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

int machine::make_pipe(const uring::sqe& entry) {
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
    const std::uint32_t wanted = call.entry.poll32_events | POLLERR | POLLHUP;
    const std::uint32_t there = f->events() & wanted;
    return there != 0 ? static_cast<int>(there) : would_wait;
}

int machine::splice(op& call, file* out, file* in) {
    const auto flags = call.entry.splice_flags;
    auto* const to = dynamic_cast<pipe_end*>(out);
    auto* const from = dynamic_cast<pipe_end*>(in);
    if (in == nullptr) {
        return -EBADF;
    }
    if (to == nullptr || from == nullptr) {
        return to == nullptr && from == nullptr ? -EINVAL : -EOPNOTSUPP;
    }
    const int result = pipe_end::move(*from, *to, call.entry.len, call.code() == opcode::tee);
    return result == would_wait && (flags & SPLICE_F_NONBLOCK) != 0 ? -EAGAIN : result;
}

/// Nobody waits here: what would have to gives -EAGAIN.
int machine::perform(const uring::sqe& entry) {
    ++world.operations;
    op call{.entry = entry};
    ::iovec one{};
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
    int result = 0;
    switch (static_cast<uring::call_opcode>(entry.opcode)) {
    case uring::call_opcode::getdents64:
    case uring::call_opcode::lseek: {
        file* const f = up ? get(entry.fd) : nullptr;
        auto* const opened = dynamic_cast<open_file*>(f);
        result = opened != nullptr ? opened->perform(entry) : f == nullptr ? -EBADF : -ESPIPE;
        break;
    }
    case uring::call_opcode::readlinkat:
        result = read_link(entry);
        break;
    case uring::call_opcode::faccessat:
        result = access(entry);
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
            if (call.code() == opcode::uring_cmd && result == -EOPNOTSUPP) {
                result = -ENOTSOCK; // as the system call says it
            }
            if (result == would_wait) {
                result = call.code() == opcode::connect ? -EINPROGRESS : -EAGAIN;
            }
        }
    }
    world.trace.call(tracer::kind::direct, index, 0, entry.opcode, entry.fd, entry.len, 0, result);
    return result;
}

// ---- names of sockets
// --------------------------------------------------------------------------

bool machine::owns(const endpoint& e) const noexcept {
    if (e.family == AF_INET) {
        return e.ip[0] == 10 && e.ip[1] == 0 && e.ip[2] == index / 250 &&
               e.ip[3] == index % 250 + 1;
    }
    return e.family == AF_INET6 && e.ip[0] == 0xfd && e.ip[14] == index / 250 &&
           e.ip[15] == index % 250 + 1;
}

endpoint machine::address_towards(const endpoint& to, std::uint16_t port) const {
    endpoint mine;
    mine.family = to.family;
    mine.port = port;
    if (to.is_loopback() || to.is_any()) {
        if (to.family == AF_INET) {
            mine.ip = {127, 0, 0, 1};
        } else {
            mine.ip[15] = 1;
        }
    } else if (to.family == AF_INET) {
        mine.ip = {10, 0, static_cast<std::uint8_t>(index / 250),
                   static_cast<std::uint8_t>(index % 250 + 1)};
    } else {
        mine.ip[0] = 0xfd;
        mine.ip[14] = static_cast<std::uint8_t>(index / 250);
        mine.ip[15] = static_cast<std::uint8_t>(index % 250 + 1);
    }
    return mine;
}

int machine::take_name(endpoint& e, socket_file& s, bool reuse_address, bool reuse_port) {
    bound_name mine{s.type(), e, &s, reuse_address, reuse_port, {}};
    if (e.family == AF_UNIX) {
        if (e.path.empty()) {
            char text[8];
            std::snprintf(text, sizeof text, "%05x", static_cast<unsigned>(next_port_++));
            e.path = std::string(1, '\0') + text;
            mine.where = e;
        } else if (e.path.front() != '\0') {
            const place p = find(AT_FDCWD, e.path.c_str(), true, false);
            if (p.error != 0 || p.target) {
                return p.error != 0 ? p.error : -EADDRINUSE;
            }
            mine.on_disk = files.create(S_IFSOCK | 0755);
            files.put(*p.directory, p.name, *mine.on_disk);
        } else if (find_name(s.type(), e) != nullptr) {
            return -EADDRINUSE;
        }
        names_.push_back(std::move(mine));
        return 0;
    }
    const auto conflicts = [&](const endpoint& wanted) {
        return std::any_of(names_.begin(), names_.end(), [&](const bound_name& other) {
            if (other.type != s.type() || other.where.family != wanted.family ||
                other.where.port != wanted.port ||
                (other.where.ip != wanted.ip && !other.where.is_any() && !wanted.is_any())) {
                return false;
            }
            if (reuse_port && other.reuse_port) {
                return false;
            }
            const auto* const stream = dynamic_cast<const stream_socket*>(other.who);
            const bool listens =
                stream != nullptr && stream->state_ == stream_socket::state::listening;
            return !(reuse_address && other.reuse_address && !listens);
        });
    };
    if (e.port == 0) {
        for (unsigned tries = 0; tries < 28'232; ++tries) {
            e.port = next_port_;
            next_port_ = next_port_ == 60'999 ? 32'768 : static_cast<std::uint16_t>(next_port_ + 1);
            if (!conflicts(e)) {
                mine.where = e;
                names_.push_back(std::move(mine));
                return 0;
            }
        }
        return -EADDRINUSE;
    }
    if (conflicts(e)) {
        return -EADDRINUSE;
    }
    names_.push_back(std::move(mine));
    return 0;
}

void machine::forget_names(socket_file& s) noexcept {
    std::erase_if(names_, [&](const bound_name& n) { return n.who == &s; });
}

socket_file* machine::find_name(int type, const endpoint& to) {
    socket_file* any = nullptr;
    unsigned found = 0;
    for (const bound_name& n : names_) {
        if (n.type != type || n.where.family != to.family) {
            continue;
        }
        if (to.family == AF_UNIX) {
            if (n.where.path == to.path) {
                return n.who;
            }
            continue;
        }
        if (n.where.port != to.port || (n.where.ip != to.ip && !n.where.is_any())) {
            continue;
        }
        if (n.where.ip == to.ip) {
            return n.who;
        }
        if (world.random.one_in(++found)) {
            any = n.who;
        }
    }
    return any;
}

/// Of several with SO_REUSEPORT, any.
stream_socket* machine::find_listener(const endpoint& to) {
    stream_socket* chosen = nullptr;
    bool exact = false;
    unsigned found = 0;
    for (const bound_name& n : names_) {
        if (n.type != SOCK_STREAM || n.where.family != to.family || n.where.port != to.port ||
            to.family == AF_UNIX) {
            continue;
        }
        auto* const s = static_cast<stream_socket*>(n.who);
        if (s->state_ != stream_socket::state::listening) {
            continue;
        }
        const bool same = n.where.ip == to.ip;
        if (!same && (!n.where.is_any() || exact)) {
            continue;
        }
        if (same && !exact) {
            exact = true;
            found = 0;
        }
        if (world.random.one_in(++found)) {
            chosen = s;
        }
    }
    return chosen;
}

stream_socket* machine::find_local_listener(const endpoint& to, int& error) {
    error = -ECONNREFUSED;
    ref<inode> wanted;
    if (!to.path.empty() && to.path.front() != '\0') {
        const place p = find(AT_FDCWD, to.path.c_str(), true, false);
        if (p.error != 0 || !p.target) {
            error = p.error != 0 ? p.error : -ENOENT;
            return nullptr;
        }
        wanted = p.target;
    }
    for (const bound_name& n : names_) {
        if (n.type == SOCK_STREAM && n.where.family == AF_UNIX &&
            (wanted ? n.on_disk == wanted : n.where.path == to.path)) {
            auto* const s = static_cast<stream_socket*>(n.who);
            return s->state_ == stream_socket::state::listening ? s : nullptr;
        }
    }
    return nullptr;
}

bool machine::has_other_listener(const stream_socket& s) const {
    const auto mine = std::find_if(names_.begin(), names_.end(),
                                   [&](const bound_name& n) { return n.who == &s; });
    return std::any_of(names_.begin(), names_.end(), [&](const bound_name& n) {
        return n.who != &s && n.type == SOCK_STREAM && n.where.family == s.family() &&
               s.family() != AF_UNIX && n.where.port == mine->where.port &&
               (n.where.ip == mine->where.ip || n.where.is_any() || mine->where.is_any()) &&
               static_cast<stream_socket*>(n.who)->state_ == stream_socket::state::listening &&
               !(n.reuse_port && mine->reuse_port);
    });
}

// ---- futexes
// -----------------------------------------------------------------------------------

int machine::futex_wait(op& call, waiter& who) {
    const auto* const word = pointer<const std::uint32_t>(call.entry.addr);
    std::atomic_ref<const std::uint32_t> value(*word);
    if (value.load(std::memory_order_seq_cst) != static_cast<std::uint32_t>(call.entry.addr2)) {
        return -EAGAIN;
    }
    futexes_[call.entry.addr].push(who);
    return would_wait;
}

int machine::futex_wake(const uring::sqe& entry) {
    const auto found = futexes_.find(entry.addr);
    int woken = 0;
    if (found == futexes_.end()) {
        return 0;
    }
    for (; static_cast<std::uint64_t>(woken) < entry.off && !found->second.empty(); ++woken) {
        waiter* const first = found->second.first();
        first->unlink();
        first->try_again();
    }
    return woken;
}

} // namespace coil::sim::detail
