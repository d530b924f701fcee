#pragma once

#include <cstddef>
#include <span>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil_test {

/// Installs a filter for all threads of this process, permanently. Returns false if it cannot.
inline bool install_filter(std::span<::sock_filter> program) {
    const ::sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

/// Makes `call` fail with `error` for all threads of this process, permanently. Returns false if no
/// filter can be installed.
inline bool forbid(unsigned call, unsigned error) {
    ::sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the system call number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install_filter(program);
}

/// Makes `call` return 0 without effect if its argument with the number `argument` has the 32-bit
/// value `value`.
inline bool answer_with_zero(unsigned call, unsigned argument, unsigned value) {
    constexpr bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    const auto at = static_cast<unsigned>(offsetof(::seccomp_data, args) + argument * 8 +
                                          (is_big_endian ? 4 : 0));
    ::sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install_filter(program);
}

} // namespace coil_test
