#pragma once

// std::unique_ptr and std::make_unique. <memory> also declares std::shared_ptr and the parallel
// algorithms, and takes several times as long to compile. libstdc++ has a separate header for the
// part that coil's headers need.

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/unique_ptr.h>)
#include <bits/unique_ptr.h> // IWYU pragma: export
#else
#include <memory> // IWYU pragma: export
#endif
