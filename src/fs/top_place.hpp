#pragma once

#include "owned_descriptor.hpp"

#include <cerrno>
#include <string>

#include <fcntl.h>

namespace coil::fs::detail {

/// The location of a path given by the caller: its parent directory, opened once, and one entry of
/// it. All operations on the path use these, so that renaming or replacing its ancestors cannot
/// redirect the work.
struct top_place {
    owned_descriptor directory;
    /// The last component without trailing slashes. For "/", and for a path that ends in "." or
    /// ".." and so names no entry of its parent, it is ".", and `directory` is the directory
    /// itself.
    std::string leaf;
    bool had_slash = false; ///< it must be a directory, or a link to one, which is followed
    int error = 0;          ///< the result of open()

    [[nodiscard]] int at() const noexcept { return directory < 0 ? AT_FDCWD : int(directory); }
    [[nodiscard]] bool is_dot() const noexcept { return leaf == "."; }
    /// For calls that take a slash at the end into account.
    [[nodiscard]] std::string name() const { return had_slash ? leaf + '/' : leaf; }

    /// Returns 0, or -errno if the parent of `path` cannot be opened. Then `leaf` is empty, which
    /// causes ENOENT in all calls; error_of() returns the real error.
    [[nodiscard]] int open(const std::string& path);

    /// The error for `result` of a call with `leaf`.
    [[nodiscard]] int error_of(int result) const noexcept {
        return result == -ENOENT && error < 0 ? error : result;
    }
};

} // namespace coil::fs::detail
