#pragma once

#include <coil/context/detail/ring_tables.hpp>
#include <coil/context/operation.hpp>
#include <coil/io/direct_descriptor.hpp>
#include <coil/uring/abi.hpp>

#include <concepts>
#include <cstdint>

namespace coil {

namespace io {

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
    /// The number of a direct descriptor's table, or ring_tables::any_files; 0 for a plain one.
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
