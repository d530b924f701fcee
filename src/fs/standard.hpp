#pragma once

#include "calls.hpp"

#include <coil/core/task.hpp>
#include <coil/exec/blocking.hpp>
#include <coil/fs/types.hpp>

#include <cerrno>
#include <system_error>
#include <type_traits>
#include <utility>

// Functions of <filesystem> that io_uring has no call for, or that make several that belong
// together: as they are, in one job on the blocking pool, so that results and errors are theirs.

namespace coil::fs::detail {

/// What a job that was not called gives: cancelled, or no thread to be had.
inline std::error_code uncalled(const std::system_error& error) noexcept {
    return {error.code().value(), std::generic_category()};
}

/// The form that throws. `f` and `paths` refer to what the awaiting coroutine owns.
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

/// The form that sets an error_code, which `f` does too; `failed` when it was not called.
template <class F>
task<std::invoke_result_t<F&>> standard(F f, std::error_code& ec, std::invoke_result_t<F&> failed) {
    try {
        co_return co_await blocking(std::move(f));
    } catch (const std::system_error& error) {
        ec = uncalled(error);
    }
    co_return failed;
}

/// The same of what gives nothing.
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
