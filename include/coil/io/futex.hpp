#pragma once

#include <coil/context/operation.hpp>
#include <coil/uring/prep.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <span>

struct futex_waitv; // <linux/futex.h>

// Words of memory to wait on, shared with other threads, other processes and whoever uses futex(2).
// Every function only describes the call; co_await starts it and gives an io_result: a value ≥ 0 or
// −errno. A word is 32 bits wide (the only width that Linux implements) and aligned; a
// std::atomic<std::uint32_t>* is what one has at hand. There is no timeout argument: timeout(op,
// d).
//
// `flags` are uring::futex_flag::*: by default size_u32, for any process. private_ is faster and
// meets only waits and wakes that say it too; let the process have started its second thread
// before: Linux 6.16 to 6.18, at least, lose a private wait that is pending when that one starts.

namespace coil::io {

/// FUTEX_WAIT_BITSET of futex(2): waits while `*word == value`. 0 when woken, which may be without
/// a reason: look at the word. -EAGAIN when the word differs at once. `mask` says which wakers are
/// heard. The word must outlive the await.
///
/// Cancelled, it gives -ECANCELED, or 0 when a waker had chosen it before: then the wake counts as
/// received, and none is lost.
///
/// IORING_OP_FUTEX_WAIT (Linux 6.7); older kernels: -EOPNOTSUPP.
inline operation futex_wait(const void* word, std::uint64_t value,
                            std::uint64_t mask = uring::futex_match_any,
                            std::uint32_t flags = uring::futex_flag::size_u32) noexcept {
    return detail::make_operation(uring::prep::futex_wait(word, value, mask, flags));
}

/// FUTEX_WAKE_BITSET of futex(2): wakes up to `count` waiters whose masks share a bit with `mask`;
/// gives how many. A `count` of 0 wakes none.
///
/// IORING_OP_FUTEX_WAKE (Linux 6.7); older kernels: by the system call, at once.
inline operation futex_wake(const void* word, std::uint64_t count,
                            std::uint64_t mask = uring::futex_match_any,
                            std::uint32_t flags = uring::futex_flag::size_u32) noexcept {
    return detail::make_operation(uring::prep::futex_wake(word, count, mask, flags));
}

/// futex_waitv(2): waits on up to 128 words at once; gives the index of one that woke it, -EAGAIN
/// when one differs at once. The array and the words must outlive the await. Cancellation as
/// futex_wait's.
///
/// IORING_OP_FUTEX_WAITV (Linux 6.7); older kernels: -EOPNOTSUPP.
inline operation futex_waitv(std::span<const uring::futex_waiter> waiters) noexcept {
    return detail::make_operation(
        uring::prep::futex_waitv(waiters.data(), static_cast<unsigned>(waiters.size())));
}

/// As above, with the type of the system's header; both are laid out the same. Linux knows no
/// `flags` yet: any gives -EINVAL.
inline operation futex_waitv(const struct ::futex_waitv* waiters, unsigned count,
                             unsigned flags = 0) noexcept {
    return detail::make_operation(uring::prep::futex_waitv(
        reinterpret_cast<const uring::futex_waiter*>(waiters), count, flags));
}

/// As above, of an array, span or vector of them.
template <std::ranges::contiguous_range Waiters>
    requires std::same_as<std::ranges::range_value_t<Waiters>, struct ::futex_waitv>
operation futex_waitv(Waiters&& waiters) noexcept {
    return io::futex_waitv(std::ranges::data(waiters),
                           static_cast<unsigned>(std::ranges::size(waiters)));
}

} // namespace coil::io
