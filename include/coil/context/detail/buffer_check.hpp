#pragma once

#include <coil/context/detail/sqe_slot.hpp>

// AddressSanitizer does not see the kernel's accesses to memory. With it, the buffers of an
// operation are checked when it is submitted and when its await returns.

#if defined(__SANITIZE_ADDRESS__)
#define COIL_CHECKS_BUFFERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COIL_CHECKS_BUFFERS 1
#endif
#endif
#if !defined(COIL_CHECKS_BUFFERS)
#define COIL_CHECKS_BUFFERS 0
#endif

namespace coil::detail {

/// Ends the program with a message and AddressSanitizer's description of the memory if a buffer of
/// an entry, or of one that follows in its chain, is poisoned.
void check_submitted_buffers(const sqe_slot& first) noexcept;
/// The same when the operation has ended. Does not check data that the kernel reads at submission,
/// because it may have been destroyed since.
void check_completed_buffers(const sqe_slot& first) noexcept;

} // namespace coil::detail
