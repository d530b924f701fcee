#pragma once

namespace lifetime_test {

/// Families that the library is known not to survive, with the reason: left out of the programs
/// unless COIL_LIFETIME_WITHOUT says something else (an empty list is ",").
///
/// on: a context that is stopped waits for a task on another that waits for the first.
/// scope_reset: a function that is delivered destroys a coroutine that is delivered behind it.
inline constexpr const char* known_defects = "on,scope_reset";
inline constexpr const char* known_defects_simulated = "on,scope_reset";

} // namespace lifetime_test
