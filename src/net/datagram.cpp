#include <coil/base/assert.hpp>
#include <coil/context/detail/perform.hpp>
#include <coil/context/detail/yield_awaiter.hpp>
#include <coil/core/this_task.hpp>
#include <coil/io/file.hpp>
#include <coil/net/datagram.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>

namespace coil::net {

namespace {

constexpr std::size_t largest_piece = 65535;
constexpr int no_ecn = -1;
constexpr int ecn_bits = 3;

/// Large enough for all that datagram_options enables: three int-sized values and a timespec.
static_assert(detail::datagram_control >=
              CMSG_SPACE(sizeof(int)) * 3 + CMSG_SPACE(sizeof(::timespec)));

template <class T>
T value_of(::cmsghdr* c) noexcept {
    T value{};
    std::memcpy(&value, CMSG_DATA(c),
                std::min<std::size_t>(sizeof value, c->cmsg_len - CMSG_LEN(0)));
    return value;
}

/// Reads the control data and the address of a received message.
datagram_info info_of(::msghdr& message) noexcept {
    datagram_info info;
    try {
        info.peer = endpoint(static_cast<const ::sockaddr*>(message.msg_name), message.msg_namelen);
    } catch (...) { // a family that endpoint does not support: no address
        info.peer = {};
    }
    for (::cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            info.segment_size = static_cast<std::size_t>(value_of<int>(c));
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            info.ecn = value_of<std::uint8_t>(c) & ecn_bits;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            info.ecn = value_of<int>(c) & ecn_bits;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            const auto t = value_of<::timespec>(c);
            info.time = std::chrono::system_clock::time_point(
                std::chrono::duration_cast<std::chrono::system_clock::duration>(
                    std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec)));
        }
    }
    return info;
}

template <class T>
void add_control(::msghdr& message, int level, int type, const T& value) noexcept {
    const std::size_t at = message.msg_controllen;
    message.msg_controllen = at + CMSG_SPACE(sizeof value);
    auto* const c = reinterpret_cast<::cmsghdr*>(static_cast<std::byte*>(message.msg_control) + at);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(c), &value, sizeof value);
}

/// Writes the control data of a message to send into `message.msg_control`.
void put_control(::msghdr& message, int family, std::size_t segment_size, int ecn) noexcept {
    message.msg_controllen = 0;
    if (segment_size != 0 && segment_size < message.msg_iov->iov_len) {
        add_control(message, IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(segment_size));
    }
    if (ecn != no_ecn) {
        // An IPv6 socket uses IP_TOS for an IPv4 peer (::ffff:a.b.c.d). These values replace the
        // socket's own type of service, including its DSCP.
        add_control(message, IPPROTO_IP, IP_TOS, ecn & ecn_bits);
        if (family == AF_INET6) {
            add_control(message, IPPROTO_IPV6, IPV6_TCLASS, ecn & ecn_bits);
        }
    }
    if (message.msg_controllen == 0) {
        message.msg_control = nullptr;
    }
}

int family_of(const socket& s) noexcept {
    int family = AF_UNSPEC;
    static_cast<void>(coil::detail::perform(
        uring::prep::getsockopt(s.native_handle(), SOL_SOCKET, SO_DOMAIN, &family, sizeof family)));
    return family;
}

/// Lets other tasks run if this one has run for long without suspending, so that an endless stream
/// of datagrams does not occupy the context. Returns whether a stop was requested.
task<bool> is_stopped() {
    co_await coil::detail::immediate_await();
    co_return (co_await this_task::stop_token()).stop_requested();
}

/// Sends the datagrams of a piece one by one. Used in a simulated world, whose network has no
/// segmentation offload.
task<io_result> send_segments_singly(const socket& s, const_buffer data,
                                     const datagram_info& info) {
    ::msghdr message{};
    ::iovec part{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (info.peer.family() != AF_UNSPEC) {
        message.msg_name = const_cast<::sockaddr*>(info.peer.data());
        message.msg_namelen = info.peer.size();
    }
    const_buffer rest = data;
    do {
        const std::size_t size =
            info.segment_size != 0 ? std::min(info.segment_size, rest.size()) : rest.size();
        part = {const_cast<void*>(rest.data()), size};
        const int n = co_await io::sendmsg(s.native_handle(), &message);
        if (n < 0) {
            co_return io_result(n);
        }
        rest = rest.drop(size);
    } while (rest.size() > 0);
    co_return io_result(static_cast<int>(data.size()));
}

} // namespace

io_result enable(const socket& s, const datagram_options& options) noexcept {
    const auto set = [&](int level, int name) {
        int on = 1;
        return coil::detail::perform(
            uring::prep::setsockopt(s.native_handle(), level, name, &on, sizeof on));
    };
    int result = 0;
    if (options.segments) {
        result = set(IPPROTO_UDP, UDP_GRO);
    }
    if (options.ecn && result >= 0) {
        // An IPv6 socket also receives over IPv4.
        if (family_of(s) == AF_INET6) {
            result = set(IPPROTO_IPV6, IPV6_RECVTCLASS);
        }
        if (result >= 0) {
            result = set(IPPROTO_IP, IP_RECVTOS);
        }
    }
    if (options.timestamps && result >= 0) {
        result = set(SOL_SOCKET, SO_TIMESTAMPNS);
    }
    return io_result(result < 0 ? result : 0);
}

datagram::datagram(received_message message) noexcept : message_(std::move(message)) {
    if (!message_) {
        return;
    }
    ::msghdr header{};
    header.msg_name = message_.name().empty() ? nullptr : message_.name().data();
    header.msg_namelen = static_cast<::socklen_t>(message_.name().size());
    header.msg_control = message_.control().data();
    header.msg_controllen = message_.control().size();
    info_ = info_of(header);
}

task<io_result> send_datagram(const socket& s, const_buffer data, datagram_info info) {
    if (data.size() > largest_piece || info.segment_size > largest_piece) {
        co_return io_result(-EMSGSIZE);
    }
    if (coil::detail::current_world() != nullptr) {
        co_return co_await send_segments_singly(s, data, info);
    }
    alignas(::cmsghdr) std::byte control[detail::datagram_control] = {};
    ::iovec part{const_cast<void*>(data.data()), data.size()};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    int family = info.peer.family();
    if (family != AF_UNSPEC) {
        message.msg_name = const_cast<::sockaddr*>(info.peer.data());
        message.msg_namelen = info.peer.size();
    } else if (info.ecn != no_ecn) {
        family = family_of(s);
    }
    put_control(message, family, info.segment_size, info.ecn);
    co_return co_await io::sendmsg(s.native_handle(), &message);
}

struct datagram_batch::slot {
    datagram_info info;
    std::size_t size = 0;
    bool truncated = false;
    ::sockaddr_storage name;
    ::iovec part;
    alignas(::cmsghdr) std::byte control[detail::datagram_control];
};

datagram_batch::datagram_batch(std::size_t capacity, std::size_t piece)
    : capacity_(std::clamp<std::size_t>(capacity, 1, UIO_MAXIOV)),
      piece_(std::clamp<std::size_t>(piece, 1, largest_piece)),
      data_(new std::byte[capacity_ * piece_]), slots_(new slot[capacity_]),
      messages_(new ::mmsghdr[capacity_]()) {}

datagram_batch::datagram_batch(datagram_batch&& other) noexcept = default;
datagram_batch& datagram_batch::operator=(datagram_batch&& other) noexcept = default;
datagram_batch::~datagram_batch() = default;

std::span<std::byte> datagram_batch::bytes(std::size_t i) const noexcept {
    COIL_ASSERT(i < size_);
    return {data_.get() + i * piece_, slots_[i].size};
}

const datagram_info& datagram_batch::info(std::size_t i) const noexcept {
    COIL_ASSERT(i < size_);
    return slots_[i].info;
}

bool datagram_batch::truncated(std::size_t i) const noexcept {
    COIL_ASSERT(i < size_);
    return slots_[i].truncated;
}

bool datagram_batch::add(const_buffer data, const datagram_info& info) noexcept {
    if (size_ == capacity_ || data.size() > piece_) {
        return false;
    }
    if (data.size() > 0) {
        std::memcpy(data_.get() + size_ * piece_, data.data(), data.size());
    }
    slots_[size_].info = info;
    slots_[size_].size = data.size();
    slots_[size_].truncated = false;
    ++size_;
    return true;
}

void datagram_batch::prepare_receive() noexcept {
    size_ = 0;
    for (std::size_t i = 0; i < capacity_; ++i) {
        slot& s = slots_[i];
        s.part = {data_.get() + i * piece_, piece_};
        ::msghdr& m = messages_[i].msg_hdr;
        m.msg_name = &s.name;
        m.msg_namelen = sizeof s.name;
        m.msg_iov = &s.part;
        m.msg_iovlen = 1;
        m.msg_control = s.control;
        m.msg_controllen = sizeof s.control;
        m.msg_flags = 0;
    }
}

void datagram_batch::received(std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        slot& s = slots_[i];
        s.info = info_of(messages_[i].msg_hdr);
        s.size = std::min<std::size_t>(messages_[i].msg_len, piece_);
        s.truncated = (messages_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
    }
    size_ = count;
}

/// `family` is that of the socket, and applies to pieces without a peer.
void datagram_batch::prepare_send(int family) noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
        slot& s = slots_[i];
        s.part = {data_.get() + i * piece_, s.size};
        const endpoint& to = s.info.peer;
        ::msghdr& m = messages_[i].msg_hdr;
        m.msg_name =
            to.size() > sizeof(::sa_family_t) ? const_cast<::sockaddr*>(to.data()) : nullptr;
        m.msg_namelen = m.msg_name != nullptr ? to.size() : 0;
        m.msg_iov = &s.part;
        m.msg_iovlen = 1;
        m.msg_control = s.control;
        put_control(m, m.msg_name != nullptr ? to.family() : family, s.info.segment_size,
                    s.info.ecn);
    }
}

task<io_result> receive_batch(const socket& s, datagram_batch& into) {
    into.prepare_receive();
    const int fd = s.native_handle();
    if (coil::detail::current_world() != nullptr) {
        ::mmsghdr& first = into.messages_[0];
        const int n = co_await io::recvmsg(fd, &first.msg_hdr);
        if (n < 0) {
            co_return io_result(n);
        }
        first.msg_len = static_cast<unsigned>(n);
        into.received(1);
        co_return io_result(1);
    }
    if (co_await is_stopped()) {
        co_return io_result(-ECANCELED);
    }
    for (;;) {
        const int n = ::recvmmsg(fd, into.messages_.get(), static_cast<unsigned>(into.capacity_),
                                 MSG_DONTWAIT, nullptr);
        if (n > 0) {
            into.received(static_cast<std::size_t>(n));
            co_return io_result(n);
        }
        if (errno != EINTR) {
            if (errno != EAGAIN) {
                co_return io_result(-errno);
            }
            if (const int ready = co_await io::poll(fd, POLLIN); ready < 0) {
                co_return io_result(ready);
            }
        }
    }
}

task<io_result> send_batch(const socket& s, datagram_batch& batch) {
    const int fd = s.native_handle();
    if (coil::detail::current_world() != nullptr) {
        for (std::size_t i = 0; i < batch.size_; ++i) {
            const const_buffer data(batch.bytes(i).data(), batch.bytes(i).size());
            if (const int n = co_await send_segments_singly(s, data, batch.info(i)); n < 0) {
                co_return io_result(n);
            }
        }
        co_return io_result(static_cast<int>(batch.size_));
    }
    const auto needs_family = [](const datagram_info& info) {
        return info.ecn != no_ecn && info.peer.family() == AF_UNSPEC;
    };
    bool ask = false;
    for (std::size_t i = 0; i < batch.size_; ++i) {
        ask = ask || needs_family(batch.slots_[i].info);
    }
    batch.prepare_send(ask ? family_of(s) : AF_UNSPEC);
    if (co_await is_stopped()) {
        co_return io_result(-ECANCELED);
    }
    std::size_t sent = 0;
    while (sent < batch.size_) {
        const int n =
            ::sendmmsg(fd, batch.messages_.get() + sent, static_cast<unsigned>(batch.size_ - sent),
                       MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            sent += static_cast<std::size_t>(n);
        } else if (errno == EAGAIN) {
            if (const int ready = co_await io::poll(fd, POLLOUT); ready < 0) {
                co_return io_result(ready);
            }
        } else if (errno != EINTR) {
            co_return io_result(sent > 0 ? static_cast<int>(sent) : -errno);
        }
    }
    co_return io_result(static_cast<int>(sent));
}

} // namespace coil::net
