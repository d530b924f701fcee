#pragma once

#include "owned_descriptor.hpp"

#include <string>

#include <fcntl.h>

namespace coil::fs::detail {

/// The location of a tree's top: its parent directory, opened once, and one component in it. All
/// operations on the top by name use these, so that renaming or replacing its ancestors cannot
/// redirect the work.
struct top_place {
    owned_descriptor directory;
    std::string leaf;       ///< without trailing slashes; the whole path for "/" and ""
    bool had_slash = false; ///< it must be a directory

    [[nodiscard]] int at() const noexcept { return directory < 0 ? AT_FDCWD : int(directory); }
    [[nodiscard]] bool is_dot_or_dot_dot() const noexcept { return leaf == "." || leaf == ".."; }

    /// 0, or -errno: the parent of `path` cannot be opened, and `leaf` is the whole path.
    [[nodiscard]] int open(const std::string& path);
};

} // namespace coil::fs::detail
