#pragma once

// std::construct_at and std::destroy_at. <memory> also declares the smart pointers and the parallel
// algorithms, and takes several times as long to compile. libstdc++ has a separate header for the
// part that coil's headers need.

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/stl_construct.h>)
#include <bits/stl_construct.h> // IWYU pragma: export
#else
#include <memory> // IWYU pragma: export
#endif
