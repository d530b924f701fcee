#include "top_place.hpp"

#include <algorithm>

namespace coil::fs::detail {

int top_place::open(const std::string& path) {
    const std::size_t last = path.find_last_not_of('/');
    if (last == std::string::npos) {
        leaf = path;
        return 0;
    }
    had_slash = last + 1 != path.size();
    const std::size_t slash = path.rfind('/', last);
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    const std::string above = begin == 0 ? "." : path.substr(0, begin);
    leaf = path.substr(begin, last + 1 - begin);
    directory =
        owned_descriptor(sys::openat(AT_FDCWD, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (directory < 0) {
        leaf = path;
        had_slash = false;
    }
    return std::min(int(directory), 0);
}

} // namespace coil::fs::detail
