#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>
#include <coil/interop/detail/callback_state.hpp>

#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

/// Whether a callback's result of type T can be made from these arguments.
template <class T, class... Args>
concept makes_result = (std::is_void_v<T> && sizeof...(Args) == 0) ||
                       (!std::is_void_v<T> && std::is_constructible_v<T, Args...>);

} // namespace detail

/// Ends an await of from_callback<T>(). Move-only; it is used once, by one of set_value(),
/// set_error() and set_stopped(), on any thread. Using it again, or after it was moved from,
/// terminates the program with a message. Destroying an unused completion cancels the await.
///
/// It is a function object, `done(value)`, for libraries that accept move-only callbacks. For C
/// libraries, to_address() converts it to the `void* user_data` of a callback:
///
///     library_start(handle, [](int status, void* user) {
///         coil::completion<int>::from_address(user)(status);
///     }, std::move(done).to_address());
///
/// All functions may be called on any thread. from_callback() describes where the coroutine
/// resumes. A coroutine on a context never resumes inside one of these functions.
template <class T>
class [[nodiscard("the await ends at once if its completion is destroyed")]] completion {
public:
    completion(completion&& other) noexcept
        : state_(coil::detail::exchange(other.state_, nullptr)) {}
    completion& operator=(completion&& other) noexcept {
        completion(std::move(other)).swap(*this);
        return *this;
    }
    completion(const completion&) = delete;
    completion& operator=(const completion&) = delete;
    ~completion() {
        if (state_ != nullptr) {
            detail::callback_state<T>::stop(coil::detail::exchange(state_, nullptr), true);
        }
    }

    /// The await returns T(args...), or throws what its constructor throws.
    template <class... Args>
        requires detail::makes_result<T, Args...>
    void set_value(Args&&... args) noexcept {
        detail::callback_state<T>::set_value(take(), std::forward<Args>(args)...);
    }
    template <class... Args>
        requires detail::makes_result<T, Args...>
    void operator()(Args&&... args) noexcept {
        set_value(std::forward<Args>(args)...);
    }
    /// Produce readable compiler errors.
    template <class... Args>
        requires(!detail::makes_result<T, Args...>)
    void set_value(Args&&...)
        COIL_DELETE("a completion<T> takes what a T is constructed from; completion<> takes "
                    "nothing");
    template <class... Args>
        requires(!detail::makes_result<T, Args...>)
    void operator()(Args&&...)
        COIL_DELETE("a completion<T> takes what a T is constructed from; completion<> takes "
                    "nothing");
    /// The await throws the exception.
    void set_error(std::exception_ptr error) noexcept {
        detail::callback_state<T>::set_error(take(), std::move(error));
    }
    /// The await throws std::system_error.
    void set_error(std::error_code error) noexcept {
        set_error(detail::exception_of_callback(error));
    }
    /// The await throws std::system_error with std::errc::operation_canceled.
    void set_stopped() noexcept { detail::callback_state<T>::stop(take(), false); }

    /// Whether the operation can still be completed by this object.
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

    /// Converts the completion to a pointer, from which from_address() restores it. Call
    /// from_address() exactly once.
    [[nodiscard]] void* to_address() && noexcept { return take(); }
    static completion from_address(void* address) noexcept {
        return completion(static_cast<detail::callback_state<T>*>(address));
    }

private:
    template <class, class, class>
    friend class detail::callback_awaiter;

    explicit completion(detail::callback_state<T>* state) noexcept : state_(state) {}

    void swap(completion& other) noexcept { coil::detail::swap_values(state_, other.state_); }
    [[nodiscard]] detail::callback_state<T>* take() noexcept {
        if (state_ == nullptr) [[unlikely]] {
            detail::end_used_completion();
        }
        return coil::detail::exchange(state_, nullptr);
    }

    detail::callback_state<T>* state_;
};

} // namespace coil
