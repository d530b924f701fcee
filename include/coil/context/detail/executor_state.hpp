#pragma once

#include <cstddef>

namespace coil::detail {

/// What a thread's variables hold on behalf of the executors whose work runs on it. Initially the
/// state of a thread without such work.
struct executor_state {
    alignas(void*) std::byte bytes[9 * sizeof(void*)] = {};
};

/// Exchanges the thread's state with another. Set if the program contains executors, before main().
constinit inline void (*exchange_executor_state)(executor_state&) noexcept = nullptr;

} // namespace coil::detail
