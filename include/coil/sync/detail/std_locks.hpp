#pragma once

#include <concepts>
#include <cstddef>
#include <mutex>
#include <shared_mutex>

namespace coil {

class mutex;
class shared_mutex;
template <std::ptrdiff_t>
class counting_semaphore;

namespace detail {

/// Mutexes whose lock() must be awaited. The standard's guards would not await it, and would later
/// unlock a mutex that they had not locked.
template <class M>
concept awaited_lock = std::same_as<M, mutex> || std::same_as<M, shared_mutex>;

template <class...>
inline constexpr bool is_awaited_by_std = false;

} // namespace detail

} // namespace coil

// Specialisations for coil's types that only produce a readable compiler error.

template <coil::detail::awaited_lock M>
class std::lock_guard<M> {
    static_assert(coil::detail::is_awaited_by_std<M>,
                  "std::lock_guard does not co_await: write auto guard = co_await m.lock_guard()");
};
template <std::ptrdiff_t Most>
class std::lock_guard<coil::counting_semaphore<Most>> {
    static_assert(coil::detail::is_awaited_by_std<coil::counting_semaphore<Most>>,
                  "a semaphore has a guard of its own: auto permit = co_await s.acquire_guard()");
};
template <coil::detail::awaited_lock M>
class std::unique_lock<M> {
    static_assert(coil::detail::is_awaited_by_std<M>,
                  "std::unique_lock does not co_await: write auto guard = co_await "
                  "m.lock_guard(); a guard can be moved and unlocked, too");
};
template <coil::detail::awaited_lock M>
class std::shared_lock<M> {
    static_assert(coil::detail::is_awaited_by_std<M>,
                  "std::shared_lock does not co_await: write auto guard = co_await "
                  "m.shared_lock_guard()");
};
template <coil::detail::awaited_lock M>
class std::scoped_lock<M> {
    static_assert(coil::detail::is_awaited_by_std<M>,
                  "std::scoped_lock does not co_await: write auto guard = co_await m.lock_guard()");
};
template <class... Ms>
    requires(coil::detail::awaited_lock<Ms> || ...)
class std::scoped_lock<Ms...> {
    static_assert(coil::detail::is_awaited_by_std<Ms...>,
                  "std::scoped_lock does not co_await: lock coil's mutexes one after the other, in "
                  "the same order everywhere, with co_await m.lock_guard()");
};
