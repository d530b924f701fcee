#pragma once

#include <coil/context/detail/checked_number.hpp>
#include <coil/context/options.hpp>

#include <concepts>
#include <string>

namespace coil {

struct runtime_options;

namespace detail {

/// What is passed to an io_context by mistake instead of its options.
template <class Options>
concept wrong_context_options =
    std::convertible_to<Options, std::string> || std::same_as<Options, runtime_options>;

/// Options with a number of entries. Does not compile for wrong options, where clang has reported
/// the mistake before.
template <class Number>
io_context_options context_options_of(Number entries) {
    io_context_options options;
    if constexpr (std::integral<Number>) {
        options.entries = checked_number<unsigned>(entries);
    } else {
#if !defined(__clang__)
        static_assert(std::integral<Number>, "name the option: io_context ctx({.entries = 64})");
#endif
    }
    return options;
}

} // namespace detail

} // namespace coil
