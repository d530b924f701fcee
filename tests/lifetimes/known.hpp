#pragma once

namespace lifetime_test {

/// Families that the library is known not to survive, with the reason: left out of the programs
/// unless COIL_LIFETIME_WITHOUT says something else (an empty list is ",").
///
/// schedule, resume_on: a context that ends drops the task, which goes back to one that is gone.
/// loop_spawn: a run_loop ends whose task is about to go on behind an async_task.
/// loop: an async_task there is seldom left over when a stop meets its blocking().
/// on: a context that is stopped waits for a task on another that waits for the first.
/// scope_reset: a function that is delivered destroys a coroutine that is delivered behind it.
inline constexpr const char* known_defects = "on,scope_reset,schedule,resume_on,loop_spawn,loop";
inline constexpr const char* known_defects_simulated = "on,scope_reset";

} // namespace lifetime_test
