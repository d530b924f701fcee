#pragma once

#include <coil/exec/detail/work.hpp>

#include <exception>
#include <utility>

namespace coil {

/// Runs functions immediately, on the calling thread.
///
///     inline_executor{}.execute([] { std::puts("before execute() returns"); });
///
/// An async_task on it runs on its caller's thread up to its first suspension, and then resumes
/// wherever the awaited work ends. It has no state; all objects are equal. Nested calls of
/// execute() use stack space.
class inline_executor {
public:
    template <class F>
    void execute(F&& f) const noexcept {
        try {
            std::forward<F>(f)();
        } catch (...) {
            detail::report_unhandled(std::current_exception());
        }
    }

    void submit(detail::work& w) const noexcept { w.run(); }

    /// Always true.
    [[nodiscard]] static bool runs_here() noexcept { return true; }

    bool operator==(const inline_executor&) const noexcept = default;
};

} // namespace coil
