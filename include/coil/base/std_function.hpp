#pragma once

// std::function. <functional> also declares the searchers, and with them the hash tables, and takes
// several times as long to compile. libstdc++ has a separate header for std::function.

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/std_function.h>)
#include <bits/std_function.h> // IWYU pragma: export
#else
#include <functional> // IWYU pragma: export
#endif
