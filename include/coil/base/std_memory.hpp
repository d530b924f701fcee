#pragma once

// std::unique_ptr, std::make_unique, std::construct_at and std::destroy_at. <memory> also declares
// std::shared_ptr and the parallel algorithms, and takes several times as long to compile.
// libstdc++ has separate headers for the parts that coil's headers need.

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/unique_ptr.h>)
#include <bits/stl_construct.h> // IWYU pragma: export
#include <bits/unique_ptr.h>    // IWYU pragma: export
#else
#include <memory> // IWYU pragma: export
#endif
