#pragma once

#include <filesystem>
#include <string>

namespace coil::io {

/// A path as the kernel takes it, from whatever holds one with a terminating zero. Refers to it: a
/// temporary lives until the end of the full expression, so `co_await io::openat(dir, name +
/// ".tmp", ...)` is fine, and storing the operation for later is not.
class path_argument {
public:
    path_argument(const char* path) noexcept : path_(path) {}                          // NOLINT
    path_argument(const std::string& path) noexcept : path_(path.c_str()) {}           // NOLINT
    path_argument(const std::filesystem::path& path) noexcept : path_(path.c_str()) {} // NOLINT

    [[nodiscard]] const char* c_str() const noexcept { return path_; }

private:
    const char* path_;
};

} // namespace coil::io
