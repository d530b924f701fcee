#pragma once

#include <coil/core/detail/frame_allocator.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace coil::detail {

/// Contains a T whose alignment exceeds that of coroutine frames. An object with such a member may
/// be a local variable of a coroutine. The buffer is larger than T by the difference of the
/// alignments, and T is at its first aligned address.
template <class T>
class aligned_inside {
    static_assert(alignof(T) > frame_alignment);

public:
    template <class... Args>
    explicit aligned_inside(Args&&... args) {
        ::new (static_cast<void*>(address())) T(std::forward<Args>(args)...);
    }
    aligned_inside(const aligned_inside&) = delete;
    aligned_inside& operator=(const aligned_inside&) = delete;
    ~aligned_inside() { (**this).~T(); }

    [[nodiscard]] T& operator*() noexcept { return *std::launder(reinterpret_cast<T*>(address())); }
    [[nodiscard]] const T& operator*() const noexcept {
        return *std::launder(reinterpret_cast<const T*>(address()));
    }
    [[nodiscard]] T* operator->() noexcept { return &**this; }
    [[nodiscard]] const T* operator->() const noexcept { return &**this; }

private:
    /// The address of T in `memory_`.
    [[nodiscard]] std::byte* address() noexcept { return memory_ + offset(); }
    [[nodiscard]] const std::byte* address() const noexcept { return memory_ + offset(); }
    [[nodiscard]] std::size_t offset() const noexcept {
        return -reinterpret_cast<std::uintptr_t>(memory_) % alignof(T);
    }

    alignas(frame_alignment) std::byte memory_[sizeof(T) + alignof(T) - frame_alignment];
};

} // namespace coil::detail
