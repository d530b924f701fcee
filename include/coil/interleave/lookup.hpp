#pragma once

#include <coil/base/exchange.hpp>
#include <coil/interleave/detail/lookup_promise.hpp>

#include <coroutine>

namespace coil {

/// A coroutine that waits only for memory. interleave() runs many at a time on one thread: while
/// the cache lines of one are on their way, the processor computes in the others.
///
///     lookup<const entry*> find(const table& t, std::uint64_t key) {
///         const entry* e = t.bucket(key);
///         for (co_await prefetch(e); e != nullptr; e = e->next, co_await prefetch(e))
///             if (e->key == key)
///                 co_return e;
///         co_return nullptr;
///     }
///
/// It is lazy and cheaper than a task: a switch costs a few nanoseconds, there is no stop token,
/// and no context knows it. It awaits prefetch(p) and other lookups; the compiler refuses
/// everything else. A lookup may await itself recursively to any depth.
///
/// R may be void, a reference, move-only, or not default-constructible. An exception that leaves
/// the body is rethrown by the co_await or by interleave(). Parameters are copied into the frame;
/// what a reference parameter refers to must outlive the lookup. A key lives until its lookup has
/// ended, so it may be taken by reference.
///
/// Threading: a lookup runs on the thread that calls interleave(). Suspended lookups hold no
/// resources except what their own locals hold; a mutex must not be held across a prefetch.
template <class R = void>
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED lookup {
public:
    using promise_type = detail::lookup_promise<R>;
    using value_type = R;

    lookup(lookup&& other) noexcept
        : coroutine_(coil::detail::exchange(other.coroutine_, nullptr)) {}
    lookup& operator=(lookup other) noexcept {
        coil::detail::swap_values(coroutine_, other.coroutine_);
        return *this;
    }
    ~lookup() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    /// Produce readable compiler errors.
    template <class Self = R>
    std::suspend_never operator co_await() const noexcept {
        static_assert(detail::always_false<Self>,
                      "a lookup is not awaited by a task or another coroutine: pass the function "
                      "to interleave(), or to async_interleave() in a task");
        return {};
    }
    operator detail::mistaken_for<R>() const // NOLINT(*-explicit-*)
        COIL_DELETE("did you forget to co_await? Write co_await f() to get the result of a lookup");

    /// For the code that runs it: takes over the frame, which has not started.
    [[nodiscard]] std::coroutine_handle<promise_type> release() noexcept {
        if (!coroutine_) [[unlikely]] {
            detail::end_with_misuse("this lookup was awaited or moved from before.");
        }
        return coil::detail::exchange(coroutine_, nullptr);
    }

private:
    friend promise_type;
    explicit lookup(std::coroutine_handle<promise_type> coroutine) noexcept
        : coroutine_(coroutine) {}

    std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

template <class R>
lookup<R> lookup_promise<R>::get_return_object() noexcept {
    return lookup<R>(std::coroutine_handle<lookup_promise>::from_promise(*this));
}

inline lookup<void> lookup_promise<void>::get_return_object() noexcept {
    return lookup<void>(std::coroutine_handle<lookup_promise>::from_promise(*this));
}

} // namespace detail

} // namespace coil
