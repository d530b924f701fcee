#pragma once

#include <coil/core/config.hpp>

#include <filesystem>
#include <string>

namespace coil::io {

/// A zero-terminated path argument, convertible from any string type. It refers to the string: a
/// temporary lives until the end of the full expression, so `co_await io::openat(dir, name +
/// ".tmp", ...)` is fine, but storing the operation or passing it to eager() is not. Clang warns
/// about a stored operation (-Wdangling).
class path_argument {
public:
    path_argument(const char* path COIL_LIFETIMEBOUND) noexcept : path_(path) {} // NOLINT
    path_argument(const std::string& path COIL_LIFETIMEBOUND) noexcept           // NOLINT
        : path_(path.c_str()) {}
    path_argument(const std::filesystem::path& path COIL_LIFETIMEBOUND) noexcept // NOLINT
        : path_(path.c_str()) {}

    [[nodiscard]] const char* c_str() const noexcept { return path_; }

private:
    const char* path_;
};

} // namespace coil::io
