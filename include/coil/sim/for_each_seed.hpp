#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <type_traits>

namespace coil::sim {

namespace detail {

/// Says which seed it was when a run fails, however it does.
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

/// Calls `f(seed)` for the seeds 1 to `count`, until one fails: it returns false or throws, or the
/// process ends in it (a signal, a sanitizer). Then `SEED=n` is on stderr. With SEED=n in the
/// environment that seed alone is played. True when none failed.
///
///     bool ok = sim::for_each_seed(10'000, [](std::uint64_t seed) {
///         sim::world w{seed};
///         ...
///         return invariant_holds;
///     });
template <class F>
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

/// SEED of the environment, or `otherwise`: for a test of one seed.
std::uint64_t seed_from_environment(std::uint64_t otherwise) noexcept;

} // namespace coil::sim
