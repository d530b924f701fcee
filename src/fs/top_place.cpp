#include "top_place.hpp"

#include "opening.hpp"

#include <algorithm>

namespace coil::fs::detail {

int top_place::open(const std::string& path) {
    const std::size_t end = path.find_last_not_of('/') + 1;
    const std::size_t begin = end == 0 ? 0 : path.rfind('/', end - 1) + 1;
    std::string above = path.substr(0, begin);
    leaf = path.substr(begin, end - begin);
    had_slash = end != path.size();
    if (path.starts_with('/') && end == 0) {
        above = "/";
        leaf = ".";
    } else if (leaf == "." || leaf == "..") {
        above = path;
        leaf = ".";
    } else if (above.empty()) {
        above = ".";
    }
    directory = owned_descriptor(sys::open_path(above.c_str(), O_PATH | O_DIRECTORY));
    error = std::min(int(directory), 0);
    if (error < 0) {
        leaf.clear();
        had_slash = false;
    }
    return error;
}

} // namespace coil::fs::detail
