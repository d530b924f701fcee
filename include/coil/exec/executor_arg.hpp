#pragma once

namespace coil {

/// The first parameter of a coroutine that returns an async_task, if the second is its executor.
struct executor_arg_t {
    explicit executor_arg_t() = default;
};
inline constexpr executor_arg_t executor_arg{};

} // namespace coil
