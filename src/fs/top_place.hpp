#pragma once

#include "owned_descriptor.hpp"

#include <string>

#include <fcntl.h>

namespace coil::fs::detail {

/// Where the top of a tree is: the directory above it, opened once, and one component in it. All
/// that is done to the top by name is done here, so that directories above it that are renamed or
/// exchanged meanwhile lead the work nowhere else.
struct top_place {
    owned_descriptor directory;
    std::string leaf;       ///< without slashes behind it; of "/" and "" all of the path
    bool had_slash = false; ///< what it names must be a directory

    [[nodiscard]] int at() const noexcept { return directory < 0 ? AT_FDCWD : int(directory); }
    [[nodiscard]] bool is_dot_or_dot_dot() const noexcept { return leaf == "." || leaf == ".."; }

    /// 0, or −errno: the directory above `path` cannot be opened, and `leaf` is all of it.
    [[nodiscard]] int open(const std::string& path);
};

} // namespace coil::fs::detail
