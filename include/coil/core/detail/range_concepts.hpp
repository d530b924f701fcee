#pragma once

// The concepts of ranges and the functions that access one: std::ranges::range, contiguous_range,
// range_value_t, begin, data, size, ... <ranges> declares them as well as all views, which costs a
// compiler several times as much. libstdc++ declares them in <span>.

#include <span> // IWYU pragma: export

#ifndef __GLIBCXX__
#include <ranges> // IWYU pragma: export
#endif
