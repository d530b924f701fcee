#pragma once

#include <cstddef>
#include <variant>

namespace coil {

/// The result of when_any(a, b, ...): the index, from 0, and the result of the child that ended
/// first. std::monostate stands for void, std::reference_wrapper for a reference.
template <class... Ts>
struct when_any_result {
    std::size_t index;
    std::variant<Ts...> value;
};

/// The result of when_any(range).
template <class T>
struct when_any_element {
    std::size_t index;
    T value;
};

} // namespace coil
