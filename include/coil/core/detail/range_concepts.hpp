#pragma once

// The concepts of ranges and the functions that access one: std::ranges::range, contiguous_range,
// range_value_t, begin, data, size, ... <ranges> also declares all views, and takes several times
// as long to compile. libstdc++ declares them in <span>.

#include <span> // IWYU pragma: export

#ifndef __GLIBCXX__
#include <ranges> // IWYU pragma: export
#endif
