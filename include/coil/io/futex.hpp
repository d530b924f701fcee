#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/byte_range.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/uring/prep.hpp>

#include <concepts>
#include <cstdint>
#include <span>

struct futex_waitv; // <linux/futex.h>

// futex(2): waiting on words of memory shared with other threads and processes. Every function only
// describes the call; co_await starts it and returns an io_result: a value ≥ 0 or -errno. A word is
// 32 bits wide (the only width that Linux implements) and aligned, for example a
// std::atomic<std::uint32_t>. There is no timeout argument: use timeout(op, d).
//
// `flags` are uring::futex_flag::*; the default, size_u32, works across processes. private_ is
// faster and matches only waits and wakes that use it too. Use private_ only after the process has
// started its second thread: Linux 6.16 to 6.18, at least, lose a private wait that is pending when
// that thread starts.

namespace coil::io {

/// FUTEX_WAIT_BITSET of futex(2): waits while `*word == value`. Returns 0 when woken, possibly
/// spuriously: re-check the word. -EAGAIN if the word differs on entry. `mask` selects the wakers.
/// The word must outlive the await.
///
/// When cancelled it returns -ECANCELED, or 0 if a waker had already selected this waiter: the
/// wake-up then counts as received and is not lost.
///
/// IORING_OP_FUTEX_WAIT (Linux 6.7); older kernels: -EOPNOTSUPP.
inline operation futex_wait(const void* word, std::uint64_t value,
                            std::uint64_t mask = uring::futex_match_any,
                            std::uint32_t flags = uring::futex_flag::size_u32) noexcept {
    return detail::make_operation(uring::prep::futex_wait(word, value, mask, flags));
}

/// FUTEX_WAKE_BITSET of futex(2): wakes up to `count` waiters whose masks share a bit with `mask`
/// and returns their number. A `count` of 0 wakes no waiter.
///
/// IORING_OP_FUTEX_WAKE (Linux 6.7); older kernels: the system call, immediately.
inline operation futex_wake(const void* word, std::uint64_t count,
                            std::uint64_t mask = uring::futex_match_any,
                            std::uint32_t flags = uring::futex_flag::size_u32) noexcept {
    return detail::make_operation(uring::prep::futex_wake(word, count, mask, flags));
}

/// futex_waitv(2): waits on up to 128 words; returns the index of the one that was woken, or
/// -EAGAIN if one differs on entry. The array and the words must outlive the await. Cancellation:
/// as for futex_wait().
///
/// IORING_OP_FUTEX_WAITV (Linux 6.7); older kernels: -EOPNOTSUPP.
inline operation
futex_waitv(std::span<const uring::futex_waiter> waiters COIL_LIFETIMEBOUND) noexcept {
    return detail::make_operation(
        uring::prep::futex_waitv(waiters.data(), static_cast<unsigned>(waiters.size())));
}

/// The same with the type of <linux/futex.h>, which has the same layout. Linux defines no `flags`
/// yet: values other than 0 fail with -EINVAL.
inline operation futex_waitv(const struct ::futex_waitv* waiters, unsigned count,
                             unsigned flags = 0) noexcept {
    return detail::make_operation(uring::prep::futex_waitv(
        reinterpret_cast<const uring::futex_waiter*>(waiters), count, flags));
}

/// The same for an array or vector, and for a span.
template <std::ranges::contiguous_range Waiters>
    requires std::same_as<std::ranges::range_value_t<Waiters>, struct ::futex_waitv> &&
             detail::is_owner_of_elements<Waiters>
operation futex_waitv(Waiters&& waiters COIL_LIFETIMEBOUND) noexcept {
    return io::futex_waitv(std::ranges::data(waiters),
                           static_cast<unsigned>(std::ranges::size(waiters)));
}
template <std::ranges::contiguous_range Waiters>
    requires std::same_as<std::ranges::range_value_t<Waiters>, struct ::futex_waitv> &&
             (!detail::is_owner_of_elements<Waiters>)
operation futex_waitv(Waiters&& waiters) noexcept {
    return io::futex_waitv(std::ranges::data(waiters),
                           static_cast<unsigned>(std::ranges::size(waiters)));
}

} // namespace coil::io
