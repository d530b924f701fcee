#pragma once

#include <coil/exec/detail/work.hpp>

namespace coil {

/// Anything that runs functions somewhere: `ex.execute(f)` calls `f()` once, some time, on a thread
/// of its choice, perhaps this one, perhaps before it returns; or destroys `f` uncalled, when it
/// has been shut down. When it throws, `f` will not be called.
///
/// Those of coil take any function that can be moved, may be called from any thread, and treat an
/// exception that leaves `f` as that of a detached task: it goes to on_unhandled_exception, or,
/// outside of a context, is printed. Those whose execute() takes a std::function will do as well.
template <class E>
concept executor = requires(E& ex, detail::work_call call) { ex.execute(std::move(call)); };

} // namespace coil
