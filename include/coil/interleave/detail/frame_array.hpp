#pragma once

#include <coil/core/detail/frame_allocator.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace coil::detail {

/// An array of default-initialised objects whose length is known at run time, in memory of the
/// frame allocator, so that repeated calls do not allocate.
template <class T>
class frame_array {
public:
    explicit frame_array(std::size_t size)
        : data_(size != 0 ? static_cast<T*>(allocate_frame(size * sizeof(T))) : nullptr),
          size_(size) {
        static_assert(std::is_nothrow_default_constructible_v<T>);
        static_assert(alignof(T) <= frame_alignment);
        std::uninitialized_default_construct_n(data_, size);
    }
    frame_array(const frame_array&) = delete;
    frame_array& operator=(const frame_array&) = delete;
    ~frame_array() {
        if (data_ != nullptr) {
            std::destroy_n(data_, size_);
            deallocate_frame(data_, size_ * sizeof(T));
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    T& operator[](std::size_t i) const noexcept { return data_[i]; }
    [[nodiscard]] T* begin() const noexcept { return data_; }
    [[nodiscard]] T* end() const noexcept { return data_ + size_; }

private:
    T* data_;
    std::size_t size_;
};

} // namespace coil::detail
