#include <coil/context/detail/perform.hpp>
#include <coil/net/message.hpp>

#include <cstring>
#include <exception>
#include <utility>

namespace coil::net::detail {

namespace {

/// SCM_PIDFD (Linux 6.5): a pidfd, which the kernel sends if the program has set SO_PASSPIDFD.
constexpr int scm_pidfd = 0x04;

/// Calls `f` for each descriptor in the control data.
template <class F>
void for_each_descriptor(::msghdr& message, F f) noexcept {
    for (::cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET ||
            (c->cmsg_type != SCM_RIGHTS && c->cmsg_type != scm_pidfd)) {
            continue;
        }
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            f(c->cmsg_type, fd);
        }
    }
}

} // namespace

received_from receive_from_endpoint_element::result() noexcept {
    received_from received{io_result(entry_.result), {}};
    if (entry_.result < 0) {
        return received;
    }
    try {
        received.peer = endpoint(reinterpret_cast<const ::sockaddr*>(&from_), message_.msg_namelen);
    } catch (...) { // a family that endpoint does not support: no address
        received.peer = {};
    }
    return received;
}

received_descriptors receive_descriptors_element::result() noexcept {
    received_descriptors received{io_result(entry_.result), {}, false};
    if (!entry_.is_completed() || entry_.result < 0) {
        return received;
    }
    received.truncated = (message_.msg_flags & MSG_CTRUNC) != 0;
    std::size_t count = 0;
    for_each_descriptor(message_, [&](int, int) noexcept { ++count; });
    bool has_room = true;
    try {
        received.descriptors.reserve(count);
    } catch (...) {
        has_room = false;
        received.result = io_result(-ENOMEM);
    }
    for_each_descriptor(message_, [&](int type, int fd) noexcept {
        io::owned_descriptor owned(fd);
        if (has_room && type == SCM_RIGHTS) {
            received.descriptors.push_back(std::move(owned));
        }
    });
    message_.msg_controllen = 0; // the result owns the descriptors now
    return received;
}

} // namespace coil::net::detail
