#pragma once

#include <coil/exec/detail/work.hpp>

namespace coil {

/// Anything that runs functions: `ex.execute(f)` calls `f()` once, now or later, on a thread of the
/// executor's choice, possibly on the calling thread before execute() returns. An executor that was
/// shut down destroys `f` uncalled. If execute() throws, `f` will not be called.
///
/// coil's executors accept any movable function and may be called from any thread. An exception
/// that leaves `f` is treated like that of a detached task: it goes to on_unhandled_exception or,
/// outside of a context, is printed. Executors whose execute() takes a std::function are accepted
/// as well.
template <class E>
concept executor = requires(E& ex, detail::work_call call) { ex.execute(std::move(call)); };

} // namespace coil
