#pragma once

#include <coil/core/config.hpp>
#include <coil/core/detail/debug_reports.hpp>

#include <cstddef>

#include <sys/socket.h>

namespace coil::detail {

/// The flags that send(2) and recv(2) define.
inline constexpr int send_flags = MSG_OOB | MSG_DONTROUTE | MSG_DONTWAIT | MSG_EOR | MSG_WAITALL |
                                  MSG_CONFIRM | MSG_NOSIGNAL | MSG_MORE | MSG_ZEROCOPY |
                                  MSG_FASTOPEN;
inline constexpr int recv_flags = MSG_OOB | MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT | MSG_WAITALL |
                                  MSG_ERRQUEUE | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC;

/// Whether `flags` may be a length passed by mistake: they contain bits that are not flags, or they
/// equal the length of the buffer and contain more than one flag.
constexpr bool may_be_a_length(int flags, int known, std::size_t size) noexcept {
    return (flags & ~known) != 0 ||
           ((flags & (flags - 1)) != 0 && static_cast<std::size_t>(flags) == size);
}

/// In builds with assertions, reports flags that may be a length.
inline void check_flags([[maybe_unused]] int flags, [[maybe_unused]] int known,
                        [[maybe_unused]] std::size_t size) noexcept {
#if COIL_ASSERTIONS
    if (may_be_a_length(flags, known, size)) [[unlikely]] {
        report_length_as_flags(flags);
    }
#endif
}

} // namespace coil::detail
