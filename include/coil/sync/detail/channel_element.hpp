#pragma once

#include <coil/core/detail/frame_allocator.hpp>

#include <optional>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// Allocated by operator new.
struct heap_allocated {};

/// A separately allocated element: of an unbounded channel, or one that a receiver gave back. A
/// receiver allocates it before it takes an element that it might give back, so that giving back
/// cannot fail.
template <class T, class Allocated = frame_allocated>
struct channel_element
    : std::conditional_t<(alignof(std::optional<T>) > frame_alignment), heap_allocated, Allocated> {
    channel_element() noexcept = default;
    explicit channel_element(T&& v) noexcept : value(std::move(v)) {}
    std::optional<T> value;
    channel_element* next = nullptr;
};

} // namespace coil::detail
