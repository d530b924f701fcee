#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/work.hpp>
#include <coil/exec/executor.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

template <class N>
inline constexpr bool number_or_pointer =
    std::is_arithmetic_v<N> || (std::is_pointer_v<N> && std::is_class_v<std::remove_pointer_t<N>>);

} // namespace detail

/// A type-erased executor.
///
///     looper_executor looper;
///     any_executor ex = looper;                                    // refers to it
///     any_executor own(std::in_place_type<new_thread_executor>);   // owns it, as do its copies
///
/// Constructed from a named executor, it refers to that executor, which must outlive it.
/// Constructed from a temporary, or with std::in_place_type (for executors that cannot be moved),
/// it shares ownership of the executor with its copies; the last of them destroys the executor. A
/// coroutine that runs on the executor does not keep it alive.
///
/// Two objects are equal if they refer to the same executor, or to executors of the same type that
/// are equal by that type's operator==. Submitting to an empty any_executor throws
/// std::logic_error. execute() allocates space for the function. Submitting a coroutine allocates
/// only what the executor allocates, and a small block if the executor accepts only functions.
///
/// Threading: the object is no more thread-safe than a pointer; the executor it refers to is
/// thread-safe.
class any_executor {
public:
    any_executor() noexcept = default;
    any_executor(std::nullptr_t) noexcept {} // NOLINT(*-explicit-*)

    /// Refers to `target`.
    template <executor E>
        requires(!std::same_as<std::remove_const_t<E>, any_executor>)
    any_executor(E& target) noexcept // NOLINT(*-explicit-*)
        : target_(detail::executor_ref::to(target)) {}

    /// Owns an executor that is moved from `target`.
    template <class E>
        requires(!std::is_reference_v<E> && !std::is_const_v<E> && !std::same_as<E, any_executor> &&
                 executor<E> && std::move_constructible<E>)
    any_executor(E&& target) // NOLINT(*-explicit-*)
        : any_executor(std::in_place_type<E>, std::move(target)) {}
    /// Produce readable compiler errors.
    template <class N>
        requires detail::number_or_pointer<N>
    any_executor(N) // NOLINT(*-explicit-*)
        COIL_DELETE_COPY("an any_executor is made from an executor, such as a thread_pool");
    template <class E>
        requires(!std::is_reference_v<E> && !std::is_const_v<E> && executor<E> &&
                 !std::move_constructible<E>)
    any_executor(E&&) // NOLINT(*-explicit-*)
        COIL_DELETE("this executor cannot be moved: construct it in place, any_executor "
                    "ex(std::in_place_type<new_thread_executor>)");

    /// Owns an E that is constructed from `args`.
    template <executor E, class... Args>
        requires std::constructible_from<E, Args...>
    explicit any_executor(std::in_place_type_t<E>, Args&&... args) {
        auto* const made = new owned<E>(std::forward<Args>(args)...);
        owner_ = made;
        target_ = detail::executor_ref::to(made->value);
    }

    any_executor(const any_executor& other) noexcept
        : target_(other.target_), owner_(other.owner_) {
        if (owner_ != nullptr) {
            owner_->owners.fetch_add(1, std::memory_order_relaxed);
        }
    }
    any_executor(any_executor&& other) noexcept { swap(other); }
    any_executor& operator=(any_executor other) noexcept {
        swap(other);
        return *this;
    }
    ~any_executor() {
        if (owner_ != nullptr && owner_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            owner_->destroy(owner_);
        }
    }
    void swap(any_executor& other) noexcept {
        coil::detail::swap_values(target_, other.target_);
        coil::detail::swap_values(owner_, other.owner_);
    }

    explicit operator bool() const noexcept { return static_cast<bool>(target_); }

    template <class F>
    void execute(F&& f) const {
        detail::execute_as_work(*this, std::forward<F>(f));
    }
    void submit(detail::work& w) const {
        check();
        target_.submit(w);
    }

    friend bool operator==(const any_executor& a, const any_executor& b) noexcept {
        const detail::executor_ref x = a.target_;
        const detail::executor_ref y = b.target_;
        return x == y || (x && x.functions() == y.functions() &&
                          x.functions()->equal(x.object(), y.object()));
    }

    /// Returns the executor if it is an E, otherwise null.
    template <class E>
    [[nodiscard]] E* target() const noexcept {
        return target_.functions() == &detail::functions_of<E> ? static_cast<E*>(target_.object())
                                                               : nullptr;
    }

    /// Used by awaiters; empty if this any_executor is empty.
    [[nodiscard]] const detail::executor_ref& ref() const noexcept { return target_; }

private:
    struct shared {
        explicit shared(void (*f)(shared*) noexcept) noexcept : destroy(f) {}
        std::atomic<unsigned> owners{1};
        void (*destroy)(shared*) noexcept;
    };
    template <class E>
    struct owned : shared {
        template <class... Args>
        explicit owned(Args&&... args)
            : shared([](shared* self) noexcept { delete static_cast<owned*>(self); }),
              value(std::forward<Args>(args)...) {}
        E value;
    };

    void check() const {
        if (!target_) [[unlikely]] {
            throw_empty();
        }
    }
    [[noreturn]] static void throw_empty();

    detail::executor_ref target_;
    shared* owner_ = nullptr;
};

namespace detail {

template <class E>
executor_ref ref_to(E& executor) noexcept {
    return executor_ref::to(executor);
}
/// Refers to the executor that the any_executor holds, because submitted work must not depend on
/// the lifetime of the any_executor. If that is empty, using the reference throws.
inline executor_ref ref_to(const any_executor& executor) noexcept {
    if (executor) {
        return executor.ref();
    }
    static constexpr executor_functions empty{
        [](void*, work& w) { any_executor().submit(w); },
        [](const void*) noexcept { return false; },
        [](const void*, const void*) noexcept { return true; },
        false,
    };
    return {nullptr, &empty};
}
inline executor_ref ref_to(any_executor& executor) noexcept {
    return ref_to(std::as_const(executor));
}

} // namespace detail

} // namespace coil
