#pragma once

#include <cstddef>

namespace coil::detail {

/// The only owner of an object, as std::unique_ptr, or of an array. Each std::unique_ptr<T>
/// instantiates a tuple and a hundred traits, which is most of what a header with such a member
/// costs a compiler.
template <class T>
class owned {
public:
    constexpr owned() noexcept = default;
    explicit owned(T* object) noexcept : object_(object) {}
    owned(owned&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
    owned& operator=(owned&& other) noexcept {
        T* const object = other.object_;
        other.object_ = nullptr;
        reset(object);
        return *this;
    }
    ~owned() { reset(); }

    [[nodiscard]] T* get() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    T* operator->() const noexcept { return object_; }
    [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }

    void reset(T* object = nullptr) noexcept {
        static_assert(requires { sizeof(T); }, "T is complete where it is destroyed");
        T* const before = object_;
        object_ = object;
        delete before;
    }

private:
    T* object_ = nullptr;
};

template <class T>
class owned<T[]> { // NOLINT(*-avoid-c-arrays)
public:
    constexpr owned() noexcept = default;
    explicit owned(T* elements) noexcept : elements_(elements) {}
    owned(owned&& other) noexcept : elements_(other.elements_) { other.elements_ = nullptr; }
    owned& operator=(owned&& other) noexcept {
        T* const elements = other.elements_;
        other.elements_ = nullptr;
        reset(elements);
        return *this;
    }
    ~owned() { reset(); }

    [[nodiscard]] T* get() const noexcept { return elements_; }
    T& operator[](std::size_t i) const noexcept { return elements_[i]; }
    [[nodiscard]] explicit operator bool() const noexcept { return elements_ != nullptr; }

    void reset(T* elements = nullptr) noexcept {
        T* const before = elements_;
        elements_ = elements;
        delete[] before;
    }
    /// The caller owns the array.
    [[nodiscard]] T* release() noexcept {
        T* const elements = elements_;
        elements_ = nullptr;
        return elements;
    }

private:
    T* elements_ = nullptr;
};

} // namespace coil::detail
