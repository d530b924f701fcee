#pragma once

#include <coil/base/std_function.hpp>
#include <coil/core/config.hpp>

#include <concepts>
#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coil {

/// The function that a supervisor calls when a child has failed: any callable that takes
/// (std::exception_ptr, std::string_view name) or (std::exception_ptr). It runs on the supervisor's
/// context, directly from the loop, and may spawn other children; it must not destroy the
/// supervisor. An exception that leaves it goes to the context's on_unhandled_exception.
class failure_handler {
public:
    failure_handler() noexcept = default;
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, failure_handler> &&
                 std::invocable<F&, std::exception_ptr, std::string_view>)
    failure_handler(F f) : call_(std::move(f)) {}
    template <class F>
        requires(!std::invocable<F&, std::exception_ptr, std::string_view> &&
                 std::invocable<F&, std::exception_ptr>)
    failure_handler(F f)
        : call_([g = std::move(f)](std::exception_ptr error, std::string_view) mutable {
              g(std::move(error));
          }) {}

    /// Produces a readable compiler error.
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, failure_handler> &&
                 !std::invocable<F&, std::exception_ptr, std::string_view> &&
                 !std::invocable<F&, std::exception_ptr>)
    failure_handler(F&&) // NOLINT(*-explicit-*)
        COIL_DELETE("on_failure takes (std::exception_ptr error) or (std::exception_ptr error, "
                    "std::string_view name)");

    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(call_); }
    void operator()(std::exception_ptr error, std::string_view name) const {
        call_(std::move(error), name);
    }

private:
    std::function<void(std::exception_ptr, std::string_view)> call_;
};

} // namespace coil
