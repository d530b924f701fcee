#pragma once

#include <coil/interleave/detail/lookup_promise.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace coil::detail {

/// The unit in which memory is prefetched.
inline constexpr std::size_t cache_line = 64;

/// Suspends a lookup. prefetch() issues the prefetches before it creates this awaiter.
class [[nodiscard("did you forget to co_await?")]] prefetch_awaiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P>) const noexcept {
        constexpr bool is_in_lookup = std::is_base_of_v<lookup_promise_base, P>;
        static_assert(is_in_lookup,
                      "prefetch(p) is awaited only in a coroutine of type lookup<R>, which "
                      "interleave() runs");
    }
    void await_resume() const noexcept {}
};

template <int write>
void prefetch_line(const void* address) noexcept {
    __builtin_prefetch(address, write);
}

template <int write>
void prefetch_lines(const void* address, std::size_t bytes) noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(address) & ~(cache_line - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(address) + bytes;
    for (std::uintptr_t line = first; line < end; line += cache_line) {
        prefetch_line<write>(reinterpret_cast<const void*>(line)); // NOLINT(*-int-to-ptr)
    }
}

} // namespace coil::detail
