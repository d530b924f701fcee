#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/std_construct.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// Aligned storage for a T in an object whose own alignment is weaker.
template <class T>
class displaced {
public:
    [[nodiscard]] T* address() noexcept {
        const auto begin = reinterpret_cast<std::uintptr_t>(memory_);
        const std::uintptr_t aligned = (begin + alignof(T) - 1) & ~(alignof(T) - 1);
        return reinterpret_cast<T*>(memory_ + (aligned - begin));
    }

private:
    alignas(2 * sizeof(void*)) std::byte memory_[sizeof(T) + alignof(T) - 2 * sizeof(void*)];
};

/// A value, a reference, nothing, or an exception. Its alignment is at most that of two pointers,
/// so that the promise of a task, which contains one, directly follows the two pointers at the
/// start of the frame.
template <class T>
class result {
public:
    result() noexcept {} // state_ says which member is active
    result(const result&) = delete;
    result& operator=(const result&) = delete;
    ~result() {
        if (state_ == state::value) {
            std::destroy_at(value());
        } else if (state_ == state::error) {
            std::destroy_at(&error_);
        }
    }

    template <class... Args>
    void set_value(Args&&... args) {
        std::construct_at(value(), std::forward<Args>(args)...);
        state_ = state::value;
    }
    void set_error(std::exception_ptr error) noexcept {
        if (state_ == state::value) { // the destructor of a local threw after co_return
            std::destroy_at(value());
        }
        std::construct_at(&error_, std::move(error));
        state_ = state::error;
    }

    [[nodiscard]] bool has_error() const noexcept { return state_ == state::error; }
    [[nodiscard]] std::exception_ptr error() const noexcept {
        return state_ == state::error ? error_ : nullptr;
    }

    /// Moves the value out or rethrows the exception. May be called once.
    T take() {
        if (state_ == state::error) [[unlikely]] {
            std::rethrow_exception(coil::detail::exchange(error_, nullptr));
        }
        return static_cast<T&&>(*value());
    }

    /// Takes over the contents of `other`.
    void move_from(result& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
        if (other.state_ == state::error) {
            set_error(coil::detail::exchange(other.error_, nullptr));
        } else if (other.state_ == state::value) {
            set_value(std::move(*other.value()));
        }
    }

private:
    static constexpr bool is_displaced = alignof(T) > 2 * sizeof(void*);

    [[nodiscard]] T* value() noexcept {
        if constexpr (is_displaced) {
            return value_.address();
        } else {
            return std::addressof(value_);
        }
    }

    enum class state : unsigned char { none, value, error };
    union {
        std::conditional_t<is_displaced, displaced<T>, T> value_;
        std::exception_ptr error_;
    };
    state state_ = state::none;
};

template <class T>
class result<T&> : public result<T*> {
public:
    void set_value(T& value) { result<T*>::set_value(std::addressof(value)); }
    T& take() { return *result<T*>::take(); }
};

template <>
class result<void> {
public:
    void set_value() noexcept {}
    void set_error(std::exception_ptr error) noexcept { error_ = std::move(error); }
    [[nodiscard]] bool has_error() const noexcept { return error_ != nullptr; }
    [[nodiscard]] std::exception_ptr error() const noexcept { return error_; }
    void take() {
        if (error_) [[unlikely]] {
            std::rethrow_exception(coil::detail::exchange(error_, nullptr));
        }
    }
    void move_from(result& other) noexcept {
        error_ = coil::detail::exchange(other.error_, nullptr);
    }

private:
    std::exception_ptr error_;
};

} // namespace coil::detail
