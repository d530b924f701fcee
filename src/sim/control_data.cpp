#include "control_data.hpp"

#include "machine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace coil::sim::detail {

namespace {

constexpr std::size_t most_files = 253; // SCM_MAX_FD

int take_rights(const machine& from, const ::cmsghdr& part, file_list& files) {
    const std::size_t count = (part.cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (files.size() + count > most_files) {
        return -EINVAL;
    }
    for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(&part) + i * sizeof fd, sizeof fd);
        ref<file> one(from.get(fd));
        if (!one) {
            return -EBADF;
        }
        files.push_back(std::move(one));
    }
    return 0;
}

} // namespace

int take_files(const machine& from, const ::msghdr& message, file_list& files) {
    if (message.msg_control == nullptr) {
        return 0;
    }
    ::msghdr copy = message; // CMSG_NXTHDR takes a pointer to non-const
    const auto* const begin = static_cast<const std::byte*>(message.msg_control);
    for (::cmsghdr* part = CMSG_FIRSTHDR(&copy); part != nullptr; part = CMSG_NXTHDR(&copy, part)) {
        const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(part) - begin);
        if (part->cmsg_len < sizeof *part || part->cmsg_len > message.msg_controllen - at) {
            return -EINVAL;
        }
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type == SCM_CREDENTIALS) {
            continue;
        }
        if (part->cmsg_type != SCM_RIGHTS) {
            return -EINVAL;
        }
        if (const int error = take_rights(from, *part, files); error != 0) {
            return error;
        }
    }
    return 0;
}

void put_files(machine& to, const file_list& files, ::msghdr& message) {
    const std::size_t size = message.msg_control != nullptr ? message.msg_controllen : 0;
    message.msg_controllen = 0;
    const std::size_t room = size > CMSG_LEN(0) ? (size - CMSG_LEN(0)) / sizeof(int) : 0;
    auto* const part = static_cast<::cmsghdr*>(message.msg_control);
    std::size_t count = 0;
    for (; count < std::min(room, files.size()); ++count) {
        const int fd = to.open(files[count]);
        if (fd < 0) {
            break;
        }
        std::memcpy(CMSG_DATA(part) + count * sizeof fd, &fd, sizeof fd);
    }
    if (count < files.size()) {
        message.msg_flags |= MSG_CTRUNC;
    }
    if (count > 0) {
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        message.msg_controllen = std::min<std::size_t>(size, CMSG_SPACE(count * sizeof(int)));
    }
}

} // namespace coil::sim::detail
