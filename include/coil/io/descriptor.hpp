#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/io_result.hpp>
#include <coil/uring/abi.hpp>

#include <concepts>

namespace coil {

namespace io {

/// A direct descriptor: a file that only this context's ring knows, by its slot in the ring's own
/// table. What accept_direct, openat_direct, socket_direct and register_file give: an io_result (a
/// slot ≥ 0, or −errno) that every call of coil::io takes in the place of a descriptor.
///
///     auto peer = co_await io::accept_direct(listener);
///     if (peer >= 0) {
///         int n = co_await io::recv(peer, buf);
///         co_await io::close(peer);
///     }
///
/// Calls on it save the kernel a look-up and a reference count each. It belongs to the context that
/// made it and to one run of that: it means nothing elsewhere. It does not own: close it with
/// io::close or io::close_direct. Those that are left close when the ring does.
class direct_descriptor : public io_result {
public:
    constexpr direct_descriptor() noexcept : io_result(-1) {}
    constexpr explicit direct_descriptor(int slot) noexcept : io_result(slot) {}
};

/// What a call works on: a plain descriptor, which is whatever converts to int, or a direct one.
class descriptor {
public:
    template <std::convertible_to<int> T>
        requires(!std::derived_from<T, direct_descriptor> && !std::same_as<T, descriptor>)
    constexpr descriptor(const T& fd) noexcept : number_(static_cast<int>(fd)) {} // NOLINT: an int
    constexpr descriptor(direct_descriptor slot) noexcept // NOLINT: one of the two kinds
        : number_(slot), direct_(true) {}

    [[nodiscard]] constexpr bool is_direct() const noexcept { return direct_; }
    /// The descriptor, or the slot.
    [[nodiscard]] constexpr int number() const noexcept { return number_; }

private:
    int number_;
    bool direct_ = false;
};

} // namespace io

namespace detail {

/// The request, made to a descriptor of either kind.
constexpr uring::sqe request_on(io::descriptor fd, uring::sqe request) noexcept {
    if (fd.is_direct()) {
        request.flags |= uring::sqe_flag::fixed_file;
    }
    return request;
}

inline operation make_operation(io::descriptor fd, const uring::sqe& request) noexcept {
    return make_operation(request_on(fd, request));
}

} // namespace detail

} // namespace coil
