#pragma once

#include <coil/context/detail/ring_tables.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/io_result.hpp>
#include <coil/uring/abi.hpp>

#include <concepts>
#include <cstdint>

namespace coil {

namespace io {

/// A direct descriptor: a file known only to this context's ring, by its slot in the ring's file
/// table. It is the result of accept_direct, openat_direct, socket_direct and register_file: an
/// io_result (a slot ≥ 0, or -errno) that every call of coil::io accepts as a descriptor.
///
///     auto peer = co_await io::accept_direct(listener);
///     if (peer >= 0) {
///         int n = co_await io::recv(peer, buf);
///         co_await io::close(peer);
///     }
///
/// Each call on it saves the kernel a descriptor look-up and a reference count. It is valid only on
/// the context that created it, during the same run: it stores the identity of its table, and
/// awaiting a call on it elsewhere returns -EBADF. A direct descriptor constructed from a number,
/// direct_descriptor{3}, refers to the table of the context on which it is used. It does not own
/// the file: close it with io::close or io::close_direct. Files still open are closed with the
/// ring.
class direct_descriptor : public io_result {
public:
    constexpr direct_descriptor() noexcept : io_result(-1) {}
    constexpr explicit direct_descriptor(int slot) noexcept : io_result(slot) {}
    /// For internal use: a slot of the table with this number, see ring_tables::files_number().
    constexpr direct_descriptor(int slot, std::uint32_t table) noexcept
        : io_result(slot), table_(table) {}

private:
    friend class descriptor;

    std::uint32_t table_ = detail::ring_tables::any_files;
};

/// The descriptor argument of a call: a plain descriptor (anything that converts to int), or a
/// direct one.
class descriptor {
public:
    template <std::convertible_to<int> T>
        requires(!std::derived_from<T, direct_descriptor> && !std::same_as<T, descriptor>)
    constexpr descriptor(const T& fd) noexcept : number_(static_cast<int>(fd)) {} // NOLINT: an int
    constexpr descriptor(direct_descriptor slot) noexcept // NOLINT: one of the two kinds
        : number_(slot), table_(slot.table_) {}

    /// Produces a readable compiler error.
    template <class Owner>
        requires(!std::convertible_to<Owner, int>) &&
                requires(const Owner& owner) { owner.native_handle(); }
    descriptor(const Owner&) // NOLINT(*-explicit-*)
        COIL_DELETE_CONVERSION("pass its descriptor: owner.native_handle(); or call its member");

    [[nodiscard]] constexpr bool is_direct() const noexcept { return table_ != 0; }
    /// The descriptor, or the slot.
    [[nodiscard]] constexpr int number() const noexcept { return number_; }
    /// The table of a direct descriptor: a number or ring_tables::any_files.
    [[nodiscard]] constexpr std::uint32_t table() const noexcept { return table_; }

private:
    int number_;
    std::uint32_t table_ = 0;
};

} // namespace io

namespace detail {

// The tables of direct descriptors have numbers above both.
static_assert(prepared_sqe::any_table < ring_tables::any_files &&
              prepared_sqe::no_table <= ring_tables::any_files);

/// Adds the table of `fd` to a request if `fd` is direct. A request may refer to two descriptors;
/// if their tables differ, it gets `no_table`.
constexpr prepared_sqe request_in_table_of(io::descriptor fd, prepared_sqe request) noexcept {
    if (fd.is_direct() && fd.table() != ring_tables::any_files) {
        const bool agrees =
            request.files_table == prepared_sqe::any_table || request.files_table == fd.table();
        request.files_table = agrees ? fd.table() : prepared_sqe::no_table;
    }
    return request;
}

/// Returns the request with `fd`, plain or direct, as its descriptor.
constexpr prepared_sqe request_on(io::descriptor fd, prepared_sqe request) noexcept {
    if (fd.is_direct()) {
        request.sqe.flags |= uring::sqe_flag::fixed_file;
        request = request_in_table_of(fd, request);
    }
    return request;
}

inline operation make_operation(io::descriptor fd, const uring::sqe& request) noexcept {
    return make_operation(request_on(fd, request));
}

} // namespace detail

} // namespace coil
