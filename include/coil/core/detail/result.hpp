#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// A value, a reference, nothing, or an exception.
template <class T>
class result {
public:
    result() noexcept {} // state_ says which member is active
    result(const result&) = delete;
    result& operator=(const result&) = delete;
    ~result() {
        if (state_ == state::value) {
            std::destroy_at(std::addressof(value_));
        } else if (state_ == state::error) {
            std::destroy_at(&error_);
        }
    }

    template <class... Args>
    void set_value(Args&&... args) {
        std::construct_at(std::addressof(value_), std::forward<Args>(args)...);
        state_ = state::value;
    }
    void set_error(std::exception_ptr error) noexcept {
        if (state_ == state::value) { // the destructor of a local threw after co_return
            std::destroy_at(std::addressof(value_));
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
            std::rethrow_exception(std::exchange(error_, nullptr));
        }
        return static_cast<T&&>(value_);
    }

    /// Takes over the contents of `other`.
    void move_from(result& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
        if (other.state_ == state::error) {
            set_error(std::exchange(other.error_, nullptr));
        } else if (other.state_ == state::value) {
            set_value(std::move(other.value_));
        }
    }

private:
    enum class state : unsigned char { none, value, error };
    union {
        T value_;
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
            std::rethrow_exception(std::exchange(error_, nullptr));
        }
    }
    void move_from(result& other) noexcept { error_ = std::exchange(other.error_, nullptr); }

private:
    std::exception_ptr error_;
};

} // namespace coil::detail
