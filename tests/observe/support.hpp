#pragma once

#include "support/run.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace coil_test {

inline std::size_t count_of(std::string_view text, std::string_view what) {
    std::size_t count = 0;
    for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) {
        ++count;
    }
    return count;
}

} // namespace coil_test
