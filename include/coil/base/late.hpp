#pragma once

#include <new>
#include <utility>

namespace coil::detail {

/// Storage for an object that is constructed later, or never: a std::optional that cannot be
/// copied, moved or compared. It compiles faster: each std::optional<T> instantiates five base
/// classes and about fifty traits.
template <class T>
class late {
public:
    late() noexcept {} // NOLINT(*-use-equals-default): the union has no default constructor
    late(const late&) = delete;
    late& operator=(const late&) = delete;
    ~late() { reset(); }

    /// Constructs the object; destroys the previous one first.
    template <class... Arguments>
    T& emplace(Arguments&&... arguments) {
        reset();
        T* const made =
            ::new (static_cast<void*>(&object_)) T(std::forward<Arguments>(arguments)...);
        exists_ = true;
        return *made;
    }
    void reset() noexcept {
        if (exists_) {
            exists_ = false;
            object_.~T();
        }
    }

    [[nodiscard]] explicit operator bool() const noexcept { return exists_; }
    T& operator*() noexcept { return object_; }
    const T& operator*() const noexcept { return object_; }
    T* operator->() noexcept { return &object_; }
    const T* operator->() const noexcept { return &object_; }

private:
    union {
        T object_;
    };
    bool exists_ = false;
};

} // namespace coil::detail
