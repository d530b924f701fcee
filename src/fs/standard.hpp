#pragma once

#include "syscalls.hpp"

#include <coil/core/task.hpp>
#include <coil/exec/blocking.hpp>
#include <coil/fs/types.hpp>

#include <cerrno>
#include <system_error>
#include <type_traits>
#include <utility>

// Functions of <filesystem> for which io_uring has no opcode, or which make several related calls:
// they run unchanged in one job on the blocking pool, so results and errors are the standard
// library's.

namespace coil::fs::detail {

/// The error of a job that was not called: cancelled, or no thread available.
inline std::error_code uncalled(const std::system_error& error) noexcept {
    return {error.code().value(), std::generic_category()};
}

/// The throwing form. `f` and `paths` refer to variables of the awaiting coroutine.
template <class F, class... Paths>
task<std::invoke_result_t<F&>> standard(F f, const char* what, const Paths&... paths) {
    try {
        co_return co_await blocking(std::move(f));
    } catch (const filesystem_error&) {
        throw;
    } catch (const std::system_error& error) {
        throw filesystem_error(what, paths..., uncalled(error));
    }
}

/// The form with an error_code, which `f` sets; returns `failed` if `f` was not called.
template <class F>
task<std::invoke_result_t<F&>> standard(F f, std::error_code& ec, std::invoke_result_t<F&> failed) {
    try {
        co_return co_await blocking(std::move(f));
    } catch (const std::system_error& error) {
        ec = uncalled(error);
    }
    co_return failed;
}

/// The same for functions without a result.
template <class F>
    requires std::is_void_v<std::invoke_result_t<F&>>
task<> standard(F f, std::error_code& ec) {
    try {
        co_await blocking(std::move(f));
    } catch (const std::system_error& error) {
        ec = uncalled(error);
    }
}

} // namespace coil::fs::detail
