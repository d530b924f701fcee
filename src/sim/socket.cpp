#include "socket.hpp"

#include "machine.hpp"
#include "socket_options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>

namespace coil::sim::detail {

namespace {

bool changes_groups(int level, int name) noexcept {
    return (level == IPPROTO_IP || level == IPPROTO_IPV6) &&
           (name == MCAST_JOIN_GROUP || name == MCAST_LEAVE_GROUP ||
            name == MCAST_JOIN_SOURCE_GROUP || name == MCAST_LEAVE_SOURCE_GROUP);
}

/// Whether a read or write names a position, which a socket does not have.
bool has_offset(const uring::sqe& entry) noexcept {
    return entry.off != 0 && entry.off != ~std::uint64_t{0};
}

} // namespace

int socket_file::attempt(op& call) {
    using uring::opcode;
    const uring::sqe& entry = call.entry;
    switch (call.code()) {
    case opcode::bind:
    case opcode::connect: {
        endpoint to;
        if (const int error = read_name(entry, to); error != 0) {
            return error;
        }
        return call.code() == opcode::connect ? connect(call, to) : bind(to);
    }
    case opcode::listen:
        return listen(static_cast<int>(entry.len));
    case opcode::accept:
        return accept(call);
    case opcode::shutdown:
        return shutdown(static_cast<int>(entry.len));
    case opcode::send:
    case opcode::send_zc:
    case opcode::sendmsg:
    case opcode::sendmsg_zc:
        // Urgent data is not simulated.
        return (entry.msg_flags & MSG_OOB) != 0 ? -EOPNOTSUPP
                                                : send(call, static_cast<int>(entry.msg_flags));
    case opcode::recv:
    case opcode::recvmsg:
        return (entry.msg_flags & MSG_OOB) != 0 ? -EOPNOTSUPP
                                                : receive(call, static_cast<int>(entry.msg_flags));
    case opcode::read:
    case opcode::readv:
    case opcode::read_fixed:
    case opcode::read_multishot:
        if (has_offset(entry)) {
            return -ESPIPE;
        }
        // Unlike recv(2), read(2) of no bytes neither waits nor takes a datagram.
        return call.size() == 0 && call.chooser == nullptr ? 0 : receive(call, 0);
    case opcode::write:
    case opcode::writev:
    case opcode::write_fixed:
        return has_offset(entry) ? -ESPIPE : send(call, 0);
    case opcode::fallocate:
        return -ENODEV;
    case opcode::sync_file_range:
        return -ESPIPE;
    case opcode::fadvise:
        return 0;
    case opcode::uring_cmd:
        return option_call(entry);
    default:
        return -EINVAL;
    }
}

/// The address of a bind or connect: 0 or -errno.
int socket_file::read_name(const uring::sqe& entry, endpoint& to) const {
    const bool connects = static_cast<uring::opcode>(entry.opcode) == uring::opcode::connect;
    const auto* const address = pointer<const void>(entry.addr);
    const auto length = static_cast<::socklen_t>(entry.addr2);
    if (length > sizeof(::sockaddr_storage)) {
        return -EINVAL;
    }
    const int error = endpoint::read(to, address, length);
    if (error == -EFAULT || (error != 0 && length < sizeof(::sa_family_t))) {
        return error;
    }
    const bool disconnects = connects && type_ == SOCK_DGRAM && to.family == AF_UNSPEC;
    if (family_ == AF_UNIX) {
        if (connects && !disconnects && length == sizeof(::sa_family_t)) {
            return -EINVAL; // no name
        }
        return to.family != AF_UNIX && !disconnects ? -EINVAL : error;
    }
    const std::size_t least = family_ == AF_INET ? sizeof(::sockaddr_in) : 24; // RFC 2133's
    if (length < least && !disconnects) {
        return -EINVAL;
    }
    if (family_ == AF_INET && to.family == AF_UNSPEC && !connects) { // INADDR_ANY is accepted
        ::sockaddr_in any{};
        std::memcpy(&any, address, sizeof any);
        any.sin_family = AF_INET;
        return any.sin_addr.s_addr != 0 ? -EAFNOSUPPORT : endpoint::read(to, &any, sizeof any);
    }
    // Disconnecting a stream is not simulated.
    return to.family != family_ && !disconnects ? -EAFNOSUPPORT : error;
}

int socket_file::option_call(const uring::sqe& entry) {
    const auto level = static_cast<int>(entry.sockopt.level);
    const auto name = static_cast<int>(entry.sockopt.optname);
    switch (entry.cmd_op) {
    case uring::socket_command::getsockopt:
        return get_option(level, name, pointer<void>(entry.optval), entry.optlen);
    case uring::socket_command::setsockopt:
        return set_option(level, name, pointer<void>(entry.optval), entry.optlen);
    default:
        return -EOPNOTSUPP;
    }
}

bool socket_file::takes_ipv4() const noexcept {
    return family_ == AF_INET6 && option(IPPROTO_IPV6, IPV6_V6ONLY) == 0;
}

int socket_file::option(int level, int name) const noexcept {
    const auto found = options_.find({level, name});
    int value = initial_value(level, name);
    if (found != options_.end()) {
        std::memcpy(&value, found->second.data(), std::min(sizeof value, found->second.size()));
    }
    return value;
}

bool socket_file::resets_at_close() const noexcept {
    const auto found = options_.find({SOL_SOCKET, SO_LINGER});
    ::linger value{};
    if (found == options_.end() || found->second.size() < sizeof value) {
        return false;
    }
    std::memcpy(&value, found->second.data(), sizeof value);
    return value.l_onoff != 0 && value.l_linger == 0;
}

/// Options that do not store what was set. Returns the length, -errno, or 0 for any other option.
int socket_file::get_computed(int name, void* value, ::socklen_t room) {
    int number = 0;
    switch (name) {
    case SO_COOKIE:
        if (room < sizeof file::number) {
            return -EINVAL;
        }
        std::memcpy(value, &(file::number), sizeof file::number);
        return sizeof file::number;
    case SO_PEERCRED: {
        // Programs of a host run as root.
        const bool is_known = family_ == AF_UNIX && type_ == SOCK_STREAM && peer() != nullptr;
        constexpr auto none = static_cast<::uid_t>(-1);
        const ::ucred peers = is_known ? ::ucred{1, 0, 0} : ::ucred{0, none, none};
        const auto length = std::min<std::size_t>(room, sizeof peers);
        std::memcpy(value, &peers, length);
        return static_cast<int>(length);
    }
    case SO_ERROR:
        number = -take_error();
        break;
    case SO_TYPE:
        number = type_;
        break;
    case SO_DOMAIN:
        number = family_;
        break;
    case SO_PROTOCOL:
        number = family_ == AF_UNIX ? 0 : type_ == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
        break;
    case SO_ACCEPTCONN:
        number = is_listening() ? 1 : 0;
        break;
    case SO_SNDBUF:
    case SO_RCVBUF:
        number = options_.contains({SOL_SOCKET, name})
                     ? 2 * option(SOL_SOCKET, name)
                     : static_cast<int>(own_machine.world.options.socket_buffer);
        break;
    default:
        return 0;
    }
    const auto length = std::min<std::size_t>(room, sizeof number);
    std::memcpy(value, &number, length);
    return static_cast<int>(length);
}

int socket_file::get_option(int level, int name, void* value, ::socklen_t room) {
    if (level == SOL_SOCKET) {
        if (const int result = get_computed(name, value, room); result != 0) {
            return result;
        }
    }
    if (level == IPPROTO_TCP && name == TCP_INFO && family_ != AF_UNIX && type_ == SOCK_STREAM) {
        ::tcp_info info{};
        if (const int error = describe(info); error != 0) {
            return error;
        }
        const auto length = std::min<std::size_t>(room, sizeof info);
        std::memcpy(value, &info, length);
        return static_cast<int>(length);
    }
    int error = 0;
    const socket_option* const what = find_option(family_, type_, level, name, false, error);
    if (what == nullptr) {
        return error;
    }
    const auto found = options_.find({level, name});
    std::vector<std::byte> all(what->size);
    if (found != options_.end()) {
        all = found->second;
    } else if (what->is != socket_option::kind::structure) {
        std::memcpy(all.data(), &what->initial, sizeof what->initial);
    }
    const auto length = std::min<std::size_t>(room, all.size());
    std::memcpy(value, all.data(), length);
    return static_cast<int>(length);
}

int socket_file::set_option(int level, int name, const void* value, ::socklen_t length) {
    if (value == nullptr) {
        return -EFAULT;
    }
    if (family_ != AF_UNIX && changes_groups(level, name)) {
        return change_groups(level, name, value, length);
    }
    int error = 0;
    const socket_option* const what = find_option(family_, type_, level, name, true, error);
    if (what == nullptr) {
        return error;
    }
    if (length < what->size) {
        return -EINVAL;
    }
    std::vector<std::byte> all(what->size);
    std::memcpy(all.data(), value, all.size());
    if (what->is != socket_option::kind::structure || name == SO_LINGER) {
        int number = 0; // of a linger, l_onoff
        std::memcpy(&number, all.data(), sizeof number);
        if (what->is == socket_option::kind::number &&
            (number < what->lowest || number > what->highest)) {
            return -EINVAL;
        }
        if (what->is != socket_option::kind::number) {
            number = number != 0 ? 1 : 0;
        }
        std::memcpy(all.data(), &number, sizeof number);
    }
    options_[{level, name}] = std::move(all);
    return 0;
}

int socket_file::get_name(bool of_peer, void* address, ::socklen_t* length) {
    const endpoint* const name = of_peer ? peer() : &local_;
    if (name == nullptr) {
        return -ENOTCONN;
    }
    endpoint whole = *name;
    whole.family = family_;
    whole.write(address, *length);
    return 0;
}

int socket_file::check_local(endpoint& to) {
    if (family_ == AF_UNIX) {
        return 0;
    }
    const bool is_group = type_ == SOCK_DGRAM && to.is_multicast();
    if (!to.is_any() && !to.is_loopback() && !is_group && !own_machine.owns(to.unmapped()) &&
        !to.unmapped().is_loopback()) {
        return -EADDRNOTAVAIL;
    }
    return 0;
}

int socket_file::bind_once(const endpoint& to, bool is_late) {
    if (!is_late) {
        return take_name(to);
    }
    endpoint wanted = to;
    // Linux checks an IPv4 address before the state of the socket, an IPv6 address after it.
    const int error = family_ == AF_INET ? check_local(wanted) : 0;
    return error != 0 ? error : -EINVAL;
}

int socket_file::take_name(const endpoint& to) {
    endpoint wanted = to;
    if (const int error = check_local(wanted); error != 0) {
        return error;
    }
    if (const int error =
            own_machine.take_name(wanted, *this, option(SOL_SOCKET, SO_REUSEADDR) != 0,
                                  option(SOL_SOCKET, SO_REUSEPORT) != 0);
        error != 0) {
        return error;
    }
    local_ = wanted;
    bound_ = true;
    return 0;
}

int socket_file::named_target(const op& call, endpoint& target) {
    const void* address = nullptr;
    ::socklen_t length = 0;
    if (call.header != nullptr) {
        address = call.header->msg_name;
        length = call.header->msg_namelen;
    } else if (call.code() == uring::opcode::send || call.code() == uring::opcode::send_zc) {
        address = reinterpret_cast<const void*>(call.entry.addr2);
        length = call.entry.addr_len;
    }
    if (address == nullptr || length == 0) {
        return 0;
    }
    const int error = endpoint::read(target, address, length);
    return error != 0 ? error : 1;
}

int socket_file::bind_somewhere() {
    if (bound_) {
        return 0;
    }
    endpoint any;
    any.family = family();
    any.ip = local_.ip; // bound to an address before, without a port: see disconnect()
    return bind(any);
}

} // namespace coil::sim::detail
