#pragma once

#include "fuzz/input.hpp"

#include <coil/io/owned_descriptor.hpp>
#include <coil/net/message.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fuzz {

namespace control_target {

/// The kernel's side of a recvmsg(2): stores control messages in the buffer like put_cmsg(), and
/// truncates the one that does not fit.
class kernel {
public:
    explicit kernel(::msghdr& message)
        : message_(message), control_(static_cast<std::byte*>(message.msg_control)),
          room_(message.msg_controllen) {
        message.msg_flags = 0;
    }
    kernel(const kernel&) = delete;
    kernel& operator=(const kernel&) = delete;
    ~kernel() { message_.msg_controllen = used_; }

    /// How many of the `size` bytes of a control message's payload fit.
    [[nodiscard]] std::size_t fits(std::size_t size) const noexcept {
        const std::size_t left = room_ - used_;
        return left < CMSG_LEN(0) ? 0 : std::min(size, left - CMSG_LEN(0));
    }
    void truncate() noexcept { message_.msg_flags |= MSG_CTRUNC; }
    void put(int level, int type, const void* data, std::size_t size) noexcept {
        const std::size_t left = room_ - used_;
        if (left < CMSG_LEN(0)) {
            truncate();
            return;
        }
        if (fits(size) < size) {
            truncate();
            size = fits(size);
        }
        ::cmsghdr header{};
        header.cmsg_len = CMSG_LEN(size);
        header.cmsg_level = level;
        header.cmsg_type = type;
        std::memcpy(control_ + used_, &header, sizeof header);
        if (size > 0) {
            std::memcpy(control_ + used_ + CMSG_LEN(0), data, size);
        }
        used_ += std::min(static_cast<std::size_t>(CMSG_SPACE(size)), left);
    }

private:
    ::msghdr& message_;
    std::byte* control_;
    std::size_t room_;
    std::size_t used_ = 0;
};

inline bool is_open(int fd) noexcept { return ::fcntl(fd, F_GETFD) >= 0; }

/// Stores new descriptors like the kernel: those that do not fit are not created.
inline void put_descriptors(kernel& k, int type, std::size_t count, std::vector<int>& created) {
    const std::size_t fitting = k.fits(count * sizeof(int)) / sizeof(int);
    if (fitting < count) {
        k.truncate();
    }
    if (fitting == 0) {
        return;
    }
    std::vector<int> fds;
    for (std::size_t i = 0; i < fitting; ++i) {
        fds.push_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
        require(fds.back() >= 0, "there are enough descriptors for the test");
    }
    k.put(SOL_SOCKET, type, fds.data(), fds.size() * sizeof(int));
    created.insert(created.end(), fds.begin(), fds.end());
}

/// Fills the control buffer as the input decides. Returns the descriptors in SCM_RIGHTS;
/// `others` receives those that are not for the program.
inline std::vector<int> fill(::msghdr& message, reader& from, std::vector<int>& others) {
    constexpr int pidfd = 0x04; // SCM_PIDFD
    std::vector<int> sent;
    kernel k(message);
    while (!from.empty() && sent.size() + others.size() < 64) {
        const std::uint8_t what = from.byte();
        if (what < 96) {
            put_descriptors(k, SCM_RIGHTS, what % 9, sent);
        } else if (what < 112) {
            put_descriptors(k, pidfd, 1, others);
        } else {
            // Not a type that carries descriptors, because none are created here.
            const int level = what % 2 == 0 ? SOL_SOCKET : from.byte();
            int type = from.byte();
            if (level == SOL_SOCKET && (type == SCM_RIGHTS || type == pidfd)) {
                type = SCM_CREDENTIALS;
            }
            // A large payload fills the buffer up to an unaligned end.
            std::string payload(from.byte() * (what >= 240 ? 4U : 1U), '\x01');
            const std::string_view given = from.text(std::min<std::size_t>(payload.size(), 16));
            std::copy(given.begin(), given.end(), payload.begin());
            k.put(level, type, payload.data(), payload.size());
        }
    }
    return sent;
}

} // namespace control_target

/// The control data of a received message: first a byte (bit 0: the result is discarded; bit 1: the
/// call has failed), then control messages.
inline void control(bytes input) {
    reader from(input);
    const std::uint8_t mode = from.byte();
    std::byte data[8];
    coil::net::detail::receive_descriptors_element element(-1, {data, sizeof data});
    auto& entry = element.arm();
    auto& message = *reinterpret_cast<::msghdr*>(entry.request.addr);
    std::vector<int> others;
    std::vector<int> sent;
    if ((mode & 2) == 0) {
        sent = control_target::fill(message, from, others);
    }
    const bool was_truncated = (message.msg_flags & MSG_CTRUNC) != 0;
    entry.complete((mode & 2) == 0 ? 1 : -ECONNRESET);
    if ((mode & 1) != 0) {
        element.drop();
    } else {
        const coil::net::received_descriptors received = element.result();
        require(received.result == ((mode & 2) == 0 ? 1 : -ECONNRESET), "the result is the call's");
        require(received.descriptors.size() == sent.size(), "every descriptor is received");
        for (std::size_t i = 0; i < sent.size(); ++i) {
            require(received.descriptors[i].native_handle() == sent[i],
                    "they are received in their order");
            require(control_target::is_open(sent[i]), "a received descriptor is open");
        }
        require(received.truncated == was_truncated, "what does not fit is reported");
        element.drop(); // must not close them a second time
        for (const int fd : sent) {
            require(control_target::is_open(fd), "the result alone owns the descriptors");
        }
    }
    sent.insert(sent.end(), others.begin(), others.end());
    for (const int fd : sent) {
        require(!control_target::is_open(fd), "no descriptor leaks");
    }
}

} // namespace fuzz
