#pragma once

#include <coil/core/config.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <type_traits>

namespace coil::sim {

namespace detail {

/// Reports the seed of a failing run, however the run ends.
class seed_report {
public:
    explicit seed_report(std::uint64_t seed) noexcept;
    seed_report(const seed_report&) = delete;
    seed_report& operator=(const seed_report&) = delete;
    ~seed_report();
    void failed() const noexcept;

private:
    int exceptions_ = std::uncaught_exceptions();
};

bool seeds_for(std::uint64_t count, const std::function<bool(std::uint64_t)>& f);

} // namespace detail

/// Calls `f(seed)` for the seeds 1 to `count` until a call fails: it returns false, throws, or ends
/// the process (a signal, a sanitizer). A failure prints `SEED=n` to stderr. With SEED=n in the
/// environment, only that seed is run. Returns true if none failed.
///
///     bool ok = sim::for_each_seed(10'000, [](std::uint64_t seed) {
///         sim::world w{seed};
///         ...
///         return invariant_holds;
///     });
template <std::invocable<std::uint64_t> F>
bool for_each_seed(std::uint64_t count, F&& f) {
    return detail::seeds_for(count, [&](std::uint64_t seed) {
        if constexpr (std::is_void_v<std::invoke_result_t<F&, std::uint64_t>>) {
            f(seed);
            return true;
        } else {
            return static_cast<bool>(f(seed));
        }
    });
}

/// Produces a readable compiler error.
template <class F>
    requires(!std::invocable<F, std::uint64_t>)
bool for_each_seed(std::uint64_t, F&&) COIL_DELETE(
    "the function takes a seed and makes the world: [](std::uint64_t seed) { sim::world "
    "w(seed); ... }");

/// Returns the value of the environment variable SEED, or else `otherwise`: for a test of a single
/// seed.
std::uint64_t seed_from_environment(std::uint64_t otherwise) noexcept;

} // namespace coil::sim
