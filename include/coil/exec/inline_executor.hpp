#pragma once

#include <coil/exec/detail/work.hpp>

#include <exception>
#include <utility>

namespace coil {

/// Runs at once what it is given, on the thread that gives it.
///
///     inline_executor{}.execute([] { std::puts("before execute() returns"); });
///
/// An async_task on it runs on its caller's thread up to its first wait, and goes on wherever what
/// it waited for ended. It holds nothing; all of them are equal. Each execute() inside of another
/// takes stack.
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

    /// Always: whoever asks is there.
    [[nodiscard]] static bool runs_here() noexcept { return true; }

    bool operator==(const inline_executor&) const noexcept = default;
};

} // namespace coil
