#pragma once

namespace lifetime_test {

/// Families that the library is known not to survive, with the reason: left out of the programs
/// unless COIL_LIFETIME_WITHOUT says something else (an empty list is ",").
inline constexpr const char* known_defects = "";
inline constexpr const char* known_defects_simulated = "";

} // namespace lifetime_test
