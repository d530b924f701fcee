#pragma once

#include <coil/base/minmax.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/this_context.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>
#include <coil/interleave/detail/lookup_loop.hpp>
#include <coil/interleave/detail/lookup_sinks.hpp>

#include <cstddef>
#include <cstdint>
#include <system_error>

namespace coil::detail {

/// The length of the slices of a computation, between which the context's other coroutines run, and
/// how often a slice reads the clock.
class slice_meter {
public:
    static constexpr std::int64_t slice_ns = 50'000;
    /// The maximum number of steps of a slice, for a clock that does not advance meanwhile, as in a
    /// simulated world.
    static constexpr std::size_t longest_slice = 65'536;

    /// The number of steps between two readings of the clock. (A reading costs as much as several
    /// steps.)
    [[nodiscard]] std::size_t steps() const noexcept { return steps_; }

    void took(std::int64_t ns) noexcept {
        if (ns > slice_ns / 5) {
            steps_ = max<std::size_t>(steps_ / 2, 1);
        } else if (ns < slice_ns / 25) {
            steps_ = min<std::size_t>(steps_ * 2, 4096);
        }
    }

private:
    std::size_t steps_ = 64;
};

/// Runs lookups for a slice on the current context. Returns whether any lookup is left.
template <class Lookups>
bool run_slice(Lookups& lookups, slice_meter& meter) {
    event_loop& clock = required_loop();
    const std::int64_t begin = clock.now_ns();
    std::int64_t last = begin;
    for (std::size_t left = slice_meter::longest_slice; left != 0;) {
        const std::size_t steps = min(meter.steps(), left);
        if (!lookups.run(steps)) {
            return false;
        }
        left -= steps;
        const std::int64_t now = clock.now_ns();
        meter.took(now - last);
        if (now - begin >= slice_meter::slice_ns) {
            break;
        }
        last = now;
    }
    return true;
}

[[noreturn]] inline void throw_interleave_stopped() {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            "coil: async_interleave");
}

template <class Keys, class F, class Sink>
task<std::size_t> run_in_slices(std::size_t slots, Keys& keys, F& f, Sink& sink) {
    const inplace_stop_token token = co_await this_task::stop_token();
    auto lookups = make_lookup_loop(slots, keys, f, sink);
    slice_meter meter;
    for (;;) {
        if (token.stop_requested()) [[unlikely]] {
            throw_interleave_stopped();
        }
        if (!run_slice(lookups, meter)) {
            co_return lookups.started();
        }
        co_await yield();
    }
}

template <class R, class Keys, class F, class Out>
task<std::size_t> interleave_to(std::size_t width, Keys keys, F f, Out out) {
    const std::size_t slots = slots_for(width, keys);
    auto sink = sink_for<R>(slots, out);
    co_return co_await run_in_slices(slots, keys, f, sink);
}

template <class Keys, class F>
task<std::size_t> interleave_void(std::size_t width, Keys keys, F f) {
    rethrow_only sink;
    co_return co_await run_in_slices(slots_for(width, keys), keys, f, sink);
}

} // namespace coil::detail
