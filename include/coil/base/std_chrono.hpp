#pragma once

// std::chrono's durations, time points, clocks and literals. <chrono> also declares calendars, time
// zones and the streams that print them, and takes several times as long to compile. libstdc++ has
// a separate header for the part that coil's headers need.

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h> // IWYU pragma: export
#else
#include <chrono> // IWYU pragma: export
#endif
