#pragma once

#include "syscalls.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/blocking.hpp>
#include <coil/fs/types.hpp>
#include <coil/uring/abi.hpp>

#include <system_error>
#include <utility>

// How the functions of coil::fs make calls and report errors.

namespace coil::fs::detail {

/// The error code for `result` of a call: none, or -result in std::generic_category(), as in
/// <filesystem>.
inline std::error_code error_of(int result) noexcept {
    return result < 0 ? std::error_code(-result, std::generic_category()) : std::error_code();
}

/// Thrown by the functions without an error_code. `what` is the qualified name of the function.
inline void throw_if(const std::error_code& error, const char* what) {
    if (error) {
        throw filesystem_error(what, error);
    }
}
inline void throw_if(const std::error_code& error, const char* what, const path& p) {
    if (error) {
        throw filesystem_error(what, p, error);
    }
}
inline void throw_if(const std::error_code& error, const char* what, const path& p1,
                     const path& p2) {
    if (error) {
        throw filesystem_error(what, p1, p2, error);
    }
}

/// Calls `f` on a thread of the blocking pool, for calls that io_uring lacks. `f` returns a result
/// or -errno. -ECANCELED if the task was asked to stop before `f` began.
template <class F>
task<io_result> on_thread(F f) {
    try {
        co_return io_result(co_await blocking(std::move(f)));
    } catch (const std::system_error& error) { // `f` was not called
        co_return io_result(-error.code().value());
    }
}

/// Awaits `call` if the ring has its opcode. Otherwise calls the equivalent `f`, which returns a
/// value ≥ 0 or -errno, on a thread of the blocking pool: a call that waits for a device must not
/// block the context.
template <class F>
task<io_result> ring_or_thread(uring::opcode opcode, operation call, F f) {
    if (coil::detail::required_loop().ring().supports(opcode)) [[likely]] {
        co_return co_await call;
    }
    co_return co_await on_thread(std::move(f));
}

} // namespace coil::fs::detail
