#pragma once

#include <coil/base/assert.hpp>

#include <cstdint>

namespace coil::detail {

/// Awaits that this thread has begun, whether they suspended or not, in code that is compiled with
/// assertions. The watchdog uses it to recognise a task that awaits without ever suspending.
constinit inline thread_local std::uint64_t awaits_on_this_thread = 0;

inline void count_await() noexcept {
#if COIL_ASSERTIONS
    ++awaits_on_this_thread;
#endif
}

} // namespace coil::detail
