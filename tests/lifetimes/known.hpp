#pragma once

namespace lifetime_test {

/// Families of steps that the library is known not to survive, with the reason. They are left out
/// unless COIL_LIFETIME_WITHOUT says otherwise (an empty list is ",").
///
/// schedule, resume_on: a context that ends drops the task, which goes back to one that is gone.
/// loop_spawn: a run_loop ends whose task is about to go on behind an async_task.
/// loop: an async_task there is seldom left over when a stop meets its blocking().
/// scope_left, scope_reset: a destructor in mid-run waits for a task elsewhere that needs what only
/// the blocked context can run.
/// on: a task that goes to a context which has ended keeps the shutdown of the one that awaits it
/// waiting (1 of 1200 programs; found_test.cpp has it). In the simulator, shutdowns of two contexts
/// are also nested on its one stack, and the lower one cannot answer the upper one.
inline constexpr const char* known_defects =
    "on,scope_left,scope_reset,schedule,resume_on,loop_spawn,loop";
inline constexpr const char* known_defects_simulated = "on,scope_reset,scope_left";

} // namespace lifetime_test
