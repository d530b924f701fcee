#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/prep.hpp>

#include <cstddef>
#include <cstdint>

#include <fcntl.h>

// Pipes, and transfers between descriptors without a copy in user space. Every function only
// describes the call; co_await starts it and gives an io_result: a value ≥ 0 or −errno, as the man
// page says.

namespace coil {

namespace detail {

/// A flag marks the source as direct, as the entry's own flag marks the target.
constexpr unsigned splice_flags(io::descriptor fd_in, unsigned flags) noexcept {
    return fd_in.is_direct() ? flags | uring::splice_flag::fd_in_fixed
                             : flags & ~uring::splice_flag::fd_in_fixed;
}

/// The request with two descriptors of either kind.
constexpr uring::sqe request_on_both(io::descriptor fd_in, io::descriptor fd_out,
                                     const uring::sqe& request) noexcept {
    return request_in_table_of(fd_in, request_on(fd_out, request));
}

/// splice(2) with offsets by pointer, which the ring does not support: they are read when the await
/// begins and updated when it ends.
class splice_element : public io_element {
public:
    static constexpr bool needs_result = true;

    splice_element(io::descriptor fd_in, ::off64_t* off_in, io::descriptor fd_out,
                   ::off64_t* off_out, unsigned len, unsigned flags) noexcept
        : io_element(request_on_both(fd_in, fd_out,
                                     uring::prep::splice(fd_in.number(), 0, fd_out.number(), 0, len,
                                                         splice_flags(fd_in, flags)))),
          in_(off_in), out_(off_out) {}

    ring_entry& arm() noexcept {
        entry_.request.splice_off_in = offset(in_);
        entry_.request.off = offset(out_);
        return entry_;
    }
    io_result result() noexcept {
        drop();
        return io_element::result();
    }
    void drop() noexcept {
        if (entry_.completed && entry_.result > 0) {
            move_on(in_);
            move_on(out_);
        }
    }

private:
    static std::uint64_t offset(const ::off64_t* at) noexcept {
        return at != nullptr ? static_cast<std::uint64_t>(*at) : uring::prep::current_position;
    }
    void move_on(::off64_t*& at) const noexcept {
        if (at != nullptr) {
            *at += entry_.result;
            at = nullptr; // update only once
        }
    }

    ::off64_t* in_;
    ::off64_t* out_;
};

/// A pipe's two descriptors; they are closed if the result is not received (guarantee G4).
class pipe_element : public io_element {
public:
    static constexpr bool needs_result = true;

    pipe_element(int* fds, int flags) noexcept
        : io_element(uring::prep::pipe(nullptr, flags)), fds_(fds) {}

    ring_entry& arm() noexcept {
        entry_.request.addr = reinterpret_cast<std::uintptr_t>(made_);
        return entry_;
    }
    io_result result() noexcept {
        if (entry_.result == 0) {
            fds_[0] = made_[0];
            fds_[1] = made_[1];
        }
        return io_element::result();
    }
    void drop() noexcept;

private:
    int made_[2] = {-1, -1}; // the caller's array may no longer exist when the result is not
                             // received
    int* fds_;
};

} // namespace detail

namespace io {

/// splice(2): bytes moved, 0 at the end. One of the two must be a pipe. A null offset means the
/// file's position, and is required for a pipe; other offsets are advanced by the bytes moved.
inline io_awaitable<detail::splice_element> splice(descriptor fd_in, ::off64_t* off_in,
                                                   descriptor fd_out, ::off64_t* off_out,
                                                   std::size_t len, unsigned flags = 0) noexcept {
    return io_awaitable<detail::splice_element>(
        detail::splice_element(fd_in, off_in, fd_out, off_out, detail::transfer_size(len), flags));
}

/// tee(2): bytes duplicated into the second pipe.
inline operation tee(descriptor fd_in, descriptor fd_out, std::size_t len,
                     unsigned flags = 0) noexcept {
    return detail::make_operation(detail::request_on_both(
        fd_in, fd_out,
        uring::prep::tee(fd_in.number(), fd_out.number(), detail::transfer_size(len),
                         detail::splice_flags(fd_in, flags))));
}

/// pipe2(2), or without flags pipe(2): 0, and `fds` filled. Both descriptors are closed if the
/// awaiting coroutine is destroyed meanwhile. Kernels before 6.16: the system call, immediately.
inline io_awaitable<detail::pipe_element> pipe(int (&fds)[2], int flags = 0) noexcept {
    return io_awaitable<detail::pipe_element>(detail::pipe_element(fds, flags));
}

/// pipe2(2), as pipe.
inline io_awaitable<detail::pipe_element> pipe2(int (&fds)[2], int flags) noexcept {
    return pipe(fds, flags);
}

} // namespace io

} // namespace coil
