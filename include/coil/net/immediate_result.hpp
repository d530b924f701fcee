#pragma once

#include <coil/core/io_result.hpp>

#include <coroutine>

namespace coil::net {

/// The result of a call that completes immediately: an io_result that may also be awaited.
class immediate_result : public io_result {
public:
    explicit immediate_result(io_result result) noexcept : io_result(result) {}

    /// Replaces that of io_result, which is deleted.
    [[nodiscard]] const immediate_result& operator co_await() const noexcept { return *this; }
    [[nodiscard]] bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    [[nodiscard]] io_result await_resume() const noexcept { return *this; }
};

} // namespace coil::net
