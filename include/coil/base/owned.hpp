#pragma once

#include <cstddef>
#include <type_traits>

namespace coil::detail {

/// The unique owner of an object or an array, like std::unique_ptr. It compiles faster: each
/// std::unique_ptr<T> instantiates a tuple and about a hundred traits, which take most of the time
/// to compile a header with such a member.
template <class T>
class owned {
    using element = std::remove_extent_t<T>;

public:
    constexpr owned() noexcept = default;
    explicit owned(element* object) noexcept : object_(object) {}
    owned(owned&& other) noexcept : object_(other.release()) {}
    owned& operator=(owned&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~owned() { reset(); }

    [[nodiscard]] element* get() const noexcept { return object_; }
    element& operator*() const noexcept { return *object_; }
    element* operator->() const noexcept { return object_; }
    element& operator[](std::size_t i) const noexcept
        requires std::is_array_v<T>
    {
        return object_[i];
    }
    [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }

    void reset(element* object = nullptr) noexcept {
        static_assert(requires { sizeof(element); }, "T must be complete where it is destroyed");
        element* const before = object_;
        object_ = object;
        if constexpr (std::is_array_v<T>) {
            delete[] before;
        } else {
            delete before;
        }
    }
    /// Returns the object, which the caller then owns.
    [[nodiscard]] element* release() noexcept {
        element* const object = object_;
        object_ = nullptr;
        return object;
    }

private:
    element* object_ = nullptr;
};

} // namespace coil::detail
