#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/detail/prep_entry.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>
#include <sys/wait.h>

struct epoll_event;

// Builders of submission entries for operations on the ring itself, time, readiness, processes and
// futexes. Include prep.hpp for all builders.
//
// A builder takes the arguments of the system call of the same name, in the same order, and returns
// the whole entry by value; `user_data` is 0 and `flags` holds what the operation itself needs.
// Memory that an argument points to is read at submission unless the builder's comment says that it
// must live until completion. Memory that the kernel writes to always must live until completion.

namespace coil::uring::prep {

/// Does nothing; completes with 0.
constexpr sqe nop() noexcept { return detail::entry(opcode::nop, -1); }

/// Completes with `result` (Linux 6.10). Older kernels complete with 0 or -EINVAL instead.
constexpr sqe nop_result(int result) noexcept {
    sqe s = detail::entry(opcode::nop, -1, 0, static_cast<std::uint32_t>(result));
    s.nop_flags = nop_flag::inject_result;
    return s;
}

// ---- readiness: poll(2), epoll_ctl(2), epoll_wait(2)

/// Completes with the ready events of `mask` (POLLIN, ...; errors and hang-up are always watched).
constexpr sqe poll_add(int fd, unsigned mask) noexcept {
    sqe s = detail::entry(opcode::poll_add, fd);
    s.poll32_events = detail::poll_mask(mask);
    return s;
}

/// Like poll_add, but repeated: one completion per wake-up, each but the last with cqe_flag::more.
constexpr sqe poll_multishot(int fd, unsigned mask) noexcept {
    sqe s = prep::poll_add(fd, mask);
    s.len = poll_flag::add_multi;
    return s;
}

/// Cancels the poll with that user_data: 0, -ENOENT, or -EALREADY if it is already completing.
constexpr sqe poll_remove(std::uint64_t user_data) noexcept {
    return detail::entry(opcode::poll_remove, -1, user_data);
}

/// Changes the events of the poll with that user_data. With poll_flag::update_user_data in `flags`
/// it also changes its user_data to `new_user_data`.
constexpr sqe poll_update(std::uint64_t user_data, unsigned mask, std::uint64_t new_user_data = 0,
                          std::uint32_t flags = poll_flag::update_events) noexcept {
    sqe s = detail::entry(opcode::poll_remove, -1, user_data, flags, new_user_data);
    s.poll32_events = detail::poll_mask(mask);
    return s;
}

inline sqe epoll_ctl(int epfd, int op, int fd, ::epoll_event* event) noexcept {
    return detail::entry(opcode::epoll_ctl, epfd, detail::address(event),
                         static_cast<std::uint32_t>(op),
                         static_cast<std::uint64_t>(static_cast<std::uint32_t>(fd)));
}

/// Has no timeout: link a link_timeout after it.
inline sqe epoll_wait(int epfd, ::epoll_event* events, int maxevents) noexcept {
    return detail::entry(opcode::epoll_wait, epfd, detail::address(events),
                         static_cast<std::uint32_t>(maxevents));
}

// ---- time

/// Completes with -ETIME on expiry, or with 0 once `count` other requests have completed (`count`
/// 0: time only). Relative unless timeout_flag::abs; the clock is CLOCK_MONOTONIC unless
/// timeout_flag::boottime or realtime. When it expires, the current io_uring_enter(2) of the ring
/// stops waiting, even if fewer completions have arrived than it was asked for.
inline sqe timeout(const timespec* ts, unsigned count = 0, std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::timeout, -1, detail::address(ts), 1, count);
    s.timeout_flags = flags;
    return s;
}

/// Completes with -ETIME each time `ts` has passed, `count` times; 0: without limit (Linux 6.4).
inline sqe timeout_multishot(const timespec* ts, unsigned count = 0) noexcept {
    return prep::timeout(ts, count, timeout_flag::multishot);
}

/// Cancels the timeout with that user_data: 0, -ENOENT (there is none, or it has expired), or
/// -EALREADY if it is just expiring.
constexpr sqe timeout_remove(std::uint64_t user_data) noexcept {
    return detail::entry(opcode::timeout_remove, -1, user_data);
}

/// Changes the expiry of the timeout with that user_data. `flags`: timeout_flag::abs, link_update.
inline sqe timeout_update(std::uint64_t user_data, const timespec* ts,
                          std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::timeout_remove, -1, user_data, 0, detail::address(ts));
    s.timeout_flags = flags | timeout_flag::update;
    return s;
}

/// Limits the preceding entry, which must carry sqe_flag::io_link: cancels it on expiry. Completes
/// with -ECANCELED if that entry ends first, otherwise with -ETIME, or with the error of the
/// cancellation (-ENOENT, -EALREADY).
inline sqe link_timeout(const timespec* ts, std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::link_timeout, -1, detail::address(ts), 1);
    s.timeout_flags = flags;
    return s;
}

// ---- cancellation

/// Cancels the request with that user_data (with cancel_flag::all: every such request). Completes
/// with 0 (with `all`: their number), -ENOENT, or -EALREADY if it is running and may still succeed.
/// The cancelled request posts its own completion in any case.
constexpr sqe cancel(std::uint64_t user_data, std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::async_cancel, -1, user_data);
    s.cancel_flags = flags;
    return s;
}

/// Cancels one request on this descriptor or, with cancel_flag::all, every one (Linux 5.19).
constexpr sqe cancel_fd(int fd, std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::async_cancel, fd);
    s.cancel_flags = flags | cancel_flag::fd;
    return s;
}

/// Cancels every request of the ring; completes with their number (Linux 5.19).
constexpr sqe cancel_any() noexcept {
    sqe s = detail::entry(opcode::async_cancel, -1);
    s.cancel_flags = cancel_flag::any;
    return s;
}

/// Cancels one request with this opcode or, with cancel_flag::all, every one (Linux 6.6).
constexpr sqe cancel_op(opcode op, std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::async_cancel, -1, 0, static_cast<std::uint32_t>(op));
    s.cancel_flags = flags | cancel_flag::op;
    return s;
}

// ---- other rings, other threads, other processes

/// Posts a completion {user_data, res} to the ring `ring_fd` (Linux 5.18). -EOVERFLOW or -ENOMEM if
/// that ring has no space.
constexpr sqe msg_ring(int ring_fd, unsigned res, std::uint64_t user_data,
                       std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::msg_ring, ring_fd, msg_ring_command::data, res, user_data);
    s.msg_ring_flags = flags;
    return s;
}

/// Like msg_ring; `cqe_flags` become the completion's flags (Linux 6.3).
constexpr sqe msg_ring_flags(int ring_fd, unsigned res, std::uint64_t user_data,
                             std::uint32_t cqe_flags, std::uint32_t flags = 0) noexcept {
    sqe s = prep::msg_ring(ring_fd, res, user_data, flags | msg_ring_flag::flags_pass);
    s.file_index = cqe_flags;
    return s;
}

/// Sends the direct descriptor `source_slot` to `target_slot` (or file_index_alloc) of the ring
/// `ring_fd`, and posts a completion with `user_data` to that ring (Linux 6.0).
constexpr sqe msg_ring_fd(int ring_fd, unsigned source_slot, std::uint32_t target_slot,
                          std::uint64_t user_data, std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::msg_ring, ring_fd, msg_ring_command::send_fd, 0, user_data);
    s.addr3 = source_slot;
    s.file_index = detail::slot(target_slot);
    s.msg_ring_flags = flags;
    return s;
}

/// Waits while `*word == value`: completes with 0 when woken, -EAGAIN if it differs (Linux 6.7).
/// Only a wake-up whose mask has a bit in common with `mask` counts. `futex_flags`: futex_flag::*;
/// the waker must use the same.
///
/// Use futex_flag::private_ only after the process has started its second thread: Linux 6.16 to
/// 6.18, at least, lose a private wait that is pending when that thread starts.
inline sqe futex_wait(const void* word, std::uint64_t value, std::uint64_t mask = futex_match_any,
                      std::uint32_t futex_flags = futex_flag::size_u32) noexcept {
    sqe s = detail::entry(opcode::futex_wait, static_cast<int>(futex_flags), detail::address(word),
                          0, value);
    s.addr3 = mask;
    return s;
}

/// Wakes up to `count` waiters; completes with their number (Linux 6.7).
inline sqe futex_wake(const void* word, std::uint64_t count, std::uint64_t mask = futex_match_any,
                      std::uint32_t futex_flags = futex_flag::size_u32) noexcept {
    sqe s = detail::entry(opcode::futex_wake, static_cast<int>(futex_flags), detail::address(word),
                          0, count);
    s.addr3 = mask;
    return s;
}

/// Waits for any of `count` words; completes with the index of the one that was woken (Linux 6.7).
/// The array is read at submission. No `flags` are defined yet: values other than 0 fail with
/// -EINVAL.
inline sqe futex_waitv(const futex_waiter* waiters, unsigned count, unsigned flags = 0) noexcept {
    sqe s = detail::entry(opcode::futex_waitv, 0, detail::address(waiters), count);
    s.futex_flags = flags;
    return s;
}

/// waitid(2) (Linux 6.7): completes with 0 and `*info` filled when a child changes state.
inline sqe waitid(::idtype_t idtype, ::id_t id, ::siginfo_t* info, int options) noexcept {
    sqe s = detail::entry(opcode::waitid, static_cast<int>(id), 0,
                          static_cast<std::uint32_t>(idtype), detail::address(info));
    s.file_index = static_cast<std::uint32_t>(options);
    return s;
}

/// A file-specific command (ioctl's successor); the caller fills in the rest of the entry.
constexpr sqe uring_cmd(int fd, std::uint32_t command) noexcept {
    sqe s = detail::entry(opcode::uring_cmd, fd);
    s.off = command; // cmd_op is the low word on little-endian machines
    if constexpr (std::endian::native == std::endian::big) {
        s.off = static_cast<std::uint64_t>(command) << 32;
    }
    return s;
}

} // namespace coil::uring::prep
