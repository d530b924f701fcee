#include "socket.hpp"

#include "machine.hpp"

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

/// The value of an option that was not set.
int initial_value(int level, int name) noexcept {
    const bool is_one =
        (level == IPPROTO_IP &&
         (name == IP_MULTICAST_TTL || name == IP_MULTICAST_LOOP || name == IP_MULTICAST_ALL)) ||
        (level == IPPROTO_IPV6 && (name == IPV6_MULTICAST_HOPS || name == IPV6_MULTICAST_LOOP ||
                                   name == IPV6_MULTICAST_ALL));
    return is_one ? 1 : 0;
}

} // namespace

int socket_file::attempt(op& call) {
    using uring::opcode;
    const uring::sqe& entry = call.entry;
    switch (call.code()) {
    case opcode::bind:
    case opcode::connect: {
        endpoint to;
        if (const int error = endpoint::read(to, pointer<void>(entry.addr),
                                             static_cast<::socklen_t>(entry.addr2));
            error != 0) {
            return error;
        }
        if (call.code() == opcode::connect) {
            if (to.family == AF_UNSPEC && type_ != SOCK_DGRAM) {
                return -EAFNOSUPPORT; // a stream cannot be disconnected
            }
            return connect(call, to);
        }
        return to.family == family_ ? bind(to) : -EAFNOSUPPORT;
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
        return receive(call, 0);
    case opcode::write:
    case opcode::writev:
    case opcode::write_fixed:
        return send(call, 0);
    case opcode::uring_cmd:
        return option_call(entry);
    default:
        return -EINVAL;
    }
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

int socket_file::get_option(int level, int name, void* value, ::socklen_t room) {
    if (level == IPPROTO_TCP && name == TCP_INFO) {
        ::tcp_info info{};
        if (const int error = describe(info); error != 0) {
            return error;
        }
        const auto length = std::min<std::size_t>(room, sizeof info);
        std::memcpy(value, &info, length);
        return static_cast<int>(length);
    }
    if (level == SOL_SOCKET && name == SO_COOKIE) {
        if (room < sizeof file::number) {
            return -EINVAL;
        }
        std::memcpy(value, &(file::number), sizeof file::number);
        return sizeof file::number;
    }
    int number = initial_value(level, name);
    const auto found = options_.find({level, name});
    if (level == SOL_SOCKET) {
        switch (name) {
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
            number = found != options_.end()
                         ? 2 * option(level, name)
                         : static_cast<int>(own_machine.world.options.socket_buffer);
            break;
        default:
            break; // the value that was set, otherwise 0
        }
    }
    if (found != options_.end() &&
        !(level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF))) {
        const auto length = std::min<std::size_t>(room, found->second.size());
        std::memcpy(value, found->second.data(), length);
        return static_cast<int>(length);
    }
    const ::socklen_t length = std::min<::socklen_t>(room, sizeof number);
    std::memcpy(value, &number, length);
    return static_cast<int>(length);
}

int socket_file::set_option(int level, int name, const void* value, ::socklen_t length) {
    if (value == nullptr) {
        return -EFAULT;
    }
    if (length < sizeof(int)) {
        return -EINVAL;
    }
    if (level == SOL_SOCKET && (name == SO_ERROR || name == SO_TYPE || name == SO_DOMAIN ||
                                name == SO_PROTOCOL || name == SO_ACCEPTCONN)) {
        return -ENOPROTOOPT;
    }
    if (level == IPPROTO_TCP && (family_ == AF_UNIX || type_ != SOCK_STREAM)) {
        return -ENOPROTOOPT;
    }
    if (changes_groups(level, name)) {
        return change_groups(level, name, value, length);
    }
    const auto* const bytes = static_cast<const std::byte*>(value);
    options_[{level, name}].assign(bytes, bytes + length);
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
    if (!to.is_any() && !to.is_loopback() && !is_group && !own_machine.owns(to)) {
        return -EADDRNOTAVAIL;
    }
    return 0;
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
    return bind(any);
}

} // namespace coil::sim::detail
