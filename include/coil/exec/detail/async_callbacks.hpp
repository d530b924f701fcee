#pragma once

#include <coil/exec/detail/async_state.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace coil::detail {

template <class F>
struct async_callback_of final : async_callback {
    explicit async_callback_of(F f) : function(std::move(f)) {}
    void call(async_state_base& state) override { function(state); }

    F function;
};

template <class F>
void add_async_callback(async_state_base& state, F f) {
    state.add(std::make_unique<async_callback_of<F>>(std::move(f)));
}

/// Whether then(f) can call an F with the result of type T.
template <class F, class T>
inline constexpr bool takes_result = std::invocable<F&, const T&> || std::invocable<F&, T>;
template <class F, class T>
inline constexpr bool takes_result<F, T&> = std::invocable<F&, T&>;
template <class F>
inline constexpr bool takes_result<F, void> = std::invocable<F&>;

/// Compiler errors for functions that then() cannot call; placed after the parameters of then(F f)
/// of a task with the result T.
#define COIL_EXPLAIN_THEN(F, T)                                                                    \
    COIL_ERROR_IF((std::is_void_v<T> && !::coil::detail::takes_result<F, T>),                      \
                  "then(f): f takes no argument, because the task returns none")                   \
    COIL_ERROR_IF((!std::is_void_v<T> && !::coil::detail::takes_result<F, T>),                     \
                  "then(f): f takes the task's result: const T&, T or T&&")

template <class T, class F>
void add_then(async_state<T>& to, F f) {
    static_assert(takes_result<F, T>, "then(f): f takes the task's result: const T&, T or T&&, "
                                      "and nothing if the task returns none");
    add_async_callback(to, [f = std::move(f)](async_state_base& base) mutable {
        auto& state = static_cast<async_state<T>&>(base);
        if (state.error()) {
            return;
        }
        if constexpr (std::is_void_v<T>) {
            std::invoke(f);
        } else if constexpr (!std::is_reference_v<T> && std::invocable<F&, const T&>) {
            std::invoke(f, state.look());
        } else {
            std::invoke(f, state.take());
        }
    });
}

/// The parameter type of a function with one parameter of a fixed type.
template <class F>
struct parameter_of : parameter_of<decltype(&F::operator())> {};
template <class R, class A>
struct parameter_of<R (*)(A)> {
    using type = A;
};
template <class R, class A>
struct parameter_of<R (*)(A) noexcept> {
    using type = A;
};
template <class C, class R, class A>
struct parameter_of<R (C::*)(A)> {
    using type = A;
};
template <class C, class R, class A>
struct parameter_of<R (C::*)(A) const> {
    using type = A;
};
template <class C, class R, class A>
struct parameter_of<R (C::*)(A) noexcept> {
    using type = A;
};
template <class C, class R, class A>
struct parameter_of<R (C::*)(A) const noexcept> {
    using type = A;
};

/// Passes the thrown object to a handler that accepts its type. Exceptions of the handler itself
/// are not caught: they are not the task's.
template <class E, class F>
void call_with_exception(async_state_base& state, F& f) {
    E* caught = nullptr;
    try {
        std::rethrow_exception(state.error());
    } catch (E& e) {
        caught = std::addressof(e); // kept alive by state.error()
    } catch (...) {
        return;
    }
    state.set_received();
    std::invoke(f, *caught);
}

template <class F>
void add_catching(async_state_base& to, F f) {
    add_async_callback(to, [f = std::move(f)](async_state_base& state) mutable {
        if (!state.error()) {
            return;
        }
        if constexpr (std::invocable<F&, std::exception_ptr>) {
            state.set_received();
            std::invoke(f, state.error());
        } else if constexpr (std::invocable<F&, std::exception&>) {
            call_with_exception<std::exception>(state, f);
        } else if constexpr (std::invocable<F&>) {
            state.set_received();
            std::invoke(f);
        } else {
            using wanted = std::remove_cvref_t<typename parameter_of<F>::type>;
            call_with_exception<wanted>(state, f);
        }
    });
}

template <class F>
void add_finally(async_state_base& to, F f) {
    static_assert(std::invocable<F&>, "finally(f): f takes no argument");
    add_async_callback(to, [f = std::move(f)](async_state_base&) mutable { std::invoke(f); });
}

} // namespace coil::detail
