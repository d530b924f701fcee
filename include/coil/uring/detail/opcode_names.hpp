#pragma once

#include <coil/uring/abi.hpp>

#include <array>
#include <cstdint>

namespace coil::uring::detail {

/// A name for reports: that of the system call, or else that of the opcode.
inline const char* opcode_name(std::uint8_t op) noexcept {
    static constexpr std::array<const char*, opcode_count> names{"nop",
                                                                 "readv",
                                                                 "writev",
                                                                 "fsync",
                                                                 "read_fixed",
                                                                 "write_fixed",
                                                                 "poll",
                                                                 "poll_remove",
                                                                 "sync_file_range",
                                                                 "sendmsg",
                                                                 "recvmsg",
                                                                 "timeout",
                                                                 "timeout_remove",
                                                                 "accept",
                                                                 "cancel",
                                                                 "link_timeout",
                                                                 "connect",
                                                                 "fallocate",
                                                                 "openat",
                                                                 "close",
                                                                 "files_update",
                                                                 "statx",
                                                                 "read",
                                                                 "write",
                                                                 "fadvise",
                                                                 "madvise",
                                                                 "send",
                                                                 "recv",
                                                                 "openat2",
                                                                 "epoll_ctl",
                                                                 "splice",
                                                                 "provide_buffers",
                                                                 "remove_buffers",
                                                                 "tee",
                                                                 "shutdown",
                                                                 "renameat",
                                                                 "unlinkat",
                                                                 "mkdirat",
                                                                 "symlinkat",
                                                                 "linkat",
                                                                 "msg_ring",
                                                                 "fsetxattr",
                                                                 "setxattr",
                                                                 "fgetxattr",
                                                                 "getxattr",
                                                                 "socket",
                                                                 "socket_option",
                                                                 "send_zc",
                                                                 "sendmsg_zc",
                                                                 "read_multishot",
                                                                 "waitid",
                                                                 "futex_wait",
                                                                 "futex_wake",
                                                                 "futex_waitv",
                                                                 "fixed_fd_install",
                                                                 "ftruncate",
                                                                 "bind",
                                                                 "listen",
                                                                 "recv_zc",
                                                                 "epoll_wait",
                                                                 "readv_fixed",
                                                                 "writev_fixed",
                                                                 "pipe"};
    return op < names.size() ? names.at(op) : "unknown";
}

} // namespace coil::uring::detail
