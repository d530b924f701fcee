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

/// Options with a number of entries. For wrong_context_options, a static_assert fails; clang has
/// already reported the mistake at the call of the constructor.
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
