#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/prep.hpp>

#include <cstddef>
#include <cstdint>

#include <fcntl.h>

namespace coil::detail {

/// A splice flag marks the source as direct; the entry's flag fixed_file marks the target.
constexpr unsigned splice_flags(io::descriptor fd_in, unsigned flags) noexcept {
    return fd_in.is_direct() ? flags | uring::splice_flag::fd_in_fixed
                             : flags & ~uring::splice_flag::fd_in_fixed;
}

/// The request with two descriptors of either kind.
constexpr prepared_sqe request_on_both(io::descriptor fd_in, io::descriptor fd_out,
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

    sqe_slot& arm() noexcept {
        entry_.request.splice_off_in = offset(in_);
        entry_.request.off = offset(out_);
        return entry_;
    }
    io_result result() noexcept {
        drop();
        return io_element::result();
    }
    void drop() noexcept {
        if (entry_.is_completed() && entry_.result > 0) {
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

    sqe_slot& arm() noexcept {
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

} // namespace coil::detail
