#pragma once

#include <cstdint>

namespace coil::uring {

/// The operations (`sqe::opcode`). Each comment names the first kernel that has it. Check
/// `ring::supports()` before relying on one: a distribution may have backported or removed it.
enum class opcode : std::uint8_t {
    nop = 0,               // 5.1
    readv = 1,             // 5.1
    writev = 2,            // 5.1
    fsync = 3,             // 5.1
    read_fixed = 4,        // 5.1
    write_fixed = 5,       // 5.1
    poll_add = 6,          // 5.1
    poll_remove = 7,       // 5.1
    sync_file_range = 8,   // 5.2
    sendmsg = 9,           // 5.3
    recvmsg = 10,          // 5.3
    timeout = 11,          // 5.4
    timeout_remove = 12,   // 5.5
    accept = 13,           // 5.5
    async_cancel = 14,     // 5.5
    link_timeout = 15,     // 5.5
    connect = 16,          // 5.5
    fallocate = 17,        // 5.6
    openat = 18,           // 5.6
    close = 19,            // 5.6
    files_update = 20,     // 5.6
    statx = 21,            // 5.6
    read = 22,             // 5.6
    write = 23,            // 5.6
    fadvise = 24,          // 5.6
    madvise = 25,          // 5.6
    send = 26,             // 5.6
    recv = 27,             // 5.6
    openat2 = 28,          // 5.6
    epoll_ctl = 29,        // 5.6
    splice = 30,           // 5.7
    provide_buffers = 31,  // 5.7
    remove_buffers = 32,   // 5.7
    tee = 33,              // 5.8
    shutdown = 34,         // 5.11
    renameat = 35,         // 5.11
    unlinkat = 36,         // 5.11
    mkdirat = 37,          // 5.15
    symlinkat = 38,        // 5.15
    linkat = 39,           // 5.15
    msg_ring = 40,         // 5.18
    fsetxattr = 41,        // 5.19
    setxattr = 42,         // 5.19
    fgetxattr = 43,        // 5.19
    getxattr = 44,         // 5.19
    socket = 45,           // 5.19
    uring_cmd = 46,        // 5.19
    send_zc = 47,          // 6.0
    sendmsg_zc = 48,       // 6.1
    read_multishot = 49,   // 6.7
    waitid = 50,           // 6.7
    futex_wait = 51,       // 6.7
    futex_wake = 52,       // 6.7
    futex_waitv = 53,      // 6.7
    fixed_fd_install = 54, // 6.8
    ftruncate = 55,        // 6.9
    bind = 56,             // 6.11
    listen = 57,           // 6.11
    recv_zc = 58,          // 6.15
    epoll_wait = 59,       // 6.15
    readv_fixed = 60,      // 6.15
    writev_fixed = 61,     // 6.15
    pipe = 62,             // 6.16
};

/// One more than the last opcode declared here.
inline constexpr unsigned opcode_count = 63;

} // namespace coil::uring
