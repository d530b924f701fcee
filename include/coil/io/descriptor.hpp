#pragma once

#include <coil/context/operation.hpp>
#include <coil/context/ring_tables.hpp>
#include <coil/core/io_result.hpp>
#include <coil/uring/abi.hpp>

#include <concepts>
#include <cstdint>

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
/// made it and to one run of that: it knows which table it is of, and a call on it that is awaited
/// elsewhere gives -EBADF. One that a program makes of a number, direct_descriptor{3}, is of
/// whatever table there is where it is used. It does not own: close it with io::close or
/// io::close_direct. Those that are left close when the ring does.
class direct_descriptor : public io_result {
public:
    constexpr direct_descriptor() noexcept : io_result(-1) {}
    constexpr explicit direct_descriptor(int slot) noexcept : io_result(slot) {}
    /// For coil: a slot of that table, see ring_tables::files_number().
    constexpr direct_descriptor(int slot, std::uint32_t table) noexcept
        : io_result(slot), table_(table) {}

private:
    friend class descriptor;

    std::uint32_t table_ = detail::ring_tables::any_files;
};

/// What a call works on: a plain descriptor, which is whatever converts to int, or a direct one.
class descriptor {
public:
    template <std::convertible_to<int> T>
        requires(!std::derived_from<T, direct_descriptor> && !std::same_as<T, descriptor>)
    constexpr descriptor(const T& fd) noexcept : number_(static_cast<int>(fd)) {} // NOLINT: an int
    constexpr descriptor(direct_descriptor slot) noexcept // NOLINT: one of the two kinds
        : number_(slot), table_(slot.table_) {}

    [[nodiscard]] constexpr bool is_direct() const noexcept { return table_ != 0; }
    /// The descriptor, or the slot.
    [[nodiscard]] constexpr int number() const noexcept { return number_; }
    /// Of a direct one, which table it is of: a number or ring_tables::any_files.
    [[nodiscard]] constexpr std::uint32_t table() const noexcept { return table_; }

private:
    int number_;
    std::uint32_t table_ = 0;
};

} // namespace io

namespace detail {

/// The request, which names a slot of the table that `fd` is of, if it is a direct one. It may name
/// two.
constexpr uring::sqe request_in_table_of(io::descriptor fd, uring::sqe request) noexcept {
    if (fd.is_direct() && fd.table() != ring_tables::any_files) {
        const bool is_second = (request.flags & ring_entry::in_table) != 0;
        const bool agree = !is_second || request.user_data == fd.table();
        request.flags |= ring_entry::in_table;
        request.user_data = agree ? fd.table() : ring_entry::no_table;
    }
    return request;
}

/// The request, made to a descriptor of either kind.
constexpr uring::sqe request_on(io::descriptor fd, uring::sqe request) noexcept {
    if (fd.is_direct()) {
        request.flags |= uring::sqe_flag::fixed_file;
        request = request_in_table_of(fd, request);
    }
    return request;
}

inline operation make_operation(io::descriptor fd, const uring::sqe& request) noexcept {
    return make_operation(request_on(fd, request));
}

} // namespace detail

} // namespace coil
