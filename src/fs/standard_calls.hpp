#pragma once

#include "ring_or_pool.hpp"

#include <coil/fs/types.hpp>

#include <cstdint>
#include <filesystem>
#include <system_error>

// The functions of <filesystem> that coil::fs calls on the blocking pool. In a simulated world, to
// which the standard library has no access, they are implemented with the world's calls, with the
// results and errors of libstdc++.

namespace coil::fs::detail {

namespace in_world {

bool is_empty(const path& p, std::error_code& ec);
path read_symlink(const path& p, std::error_code& ec);
void copy_symlink(const path& from, const path& to, std::error_code& ec);
void last_write_time(const path& p, file_time_type to, std::error_code& ec);
void permissions(const path& p, perms to, perm_options how, std::error_code& ec);
void resize_file(const path& p, std::uintmax_t size, std::error_code& ec);
space_info space(const path& p, std::error_code& ec);
bool equivalent(const path& a, const path& b, std::error_code& ec);
path canonical(const path& p, std::error_code& ec);
path weakly_canonical(const path& p, std::error_code& ec);
path relative(const path& p, const path& base, std::error_code& ec);
path proximate(const path& p, const path& base, std::error_code& ec);
/// Programs of a simulated world run in "/".
void current_path(const path& p, std::error_code& ec);

} // namespace in_world

/// Each function in the form with an error_code and in the throwing form.
namespace stdfs {

inline bool is_empty(const path& p, std::error_code& ec) {
    return sys::is_in_world() ? in_world::is_empty(p, ec) : std::filesystem::is_empty(p, ec);
}
inline bool is_empty(const path& p) {
    if (!sys::is_in_world()) {
        return std::filesystem::is_empty(p);
    }
    std::error_code ec;
    bool result = in_world::is_empty(p, ec);
    throw_if(ec, "coil::fs::is_empty", p);
    return result;
}

inline path read_symlink(const path& p, std::error_code& ec) {
    return sys::is_in_world() ? in_world::read_symlink(p, ec)
                              : std::filesystem::read_symlink(p, ec);
}
inline path read_symlink(const path& p) {
    if (!sys::is_in_world()) {
        return std::filesystem::read_symlink(p);
    }
    std::error_code ec;
    path result = in_world::read_symlink(p, ec);
    throw_if(ec, "coil::fs::read_symlink", p);
    return result;
}

inline void copy_symlink(const path& from, const path& to, std::error_code& ec) {
    return sys::is_in_world() ? in_world::copy_symlink(from, to, ec)
                              : std::filesystem::copy_symlink(from, to, ec);
}
inline void copy_symlink(const path& from, const path& to) {
    if (!sys::is_in_world()) {
        return std::filesystem::copy_symlink(from, to);
    }
    std::error_code ec;
    in_world::copy_symlink(from, to, ec);
    throw_if(ec, "coil::fs::copy_symlink", from, to);
}

inline void last_write_time(const path& p, file_time_type to, std::error_code& ec) {
    return sys::is_in_world() ? in_world::last_write_time(p, to, ec)
                              : std::filesystem::last_write_time(p, to, ec);
}
inline void last_write_time(const path& p, file_time_type to) {
    if (!sys::is_in_world()) {
        return std::filesystem::last_write_time(p, to);
    }
    std::error_code ec;
    in_world::last_write_time(p, to, ec);
    throw_if(ec, "coil::fs::last_write_time", p);
}

/// Whether to use coil's implementation. With nofollow it is needed because that of libstdc++
/// follows a link that replaces the file during the call.
inline bool has_own_permissions(perm_options how) noexcept {
    return sys::is_in_world() || (how & perm_options::nofollow) == perm_options::nofollow;
}
inline void permissions(const path& p, perms to, perm_options how, std::error_code& ec) {
    return has_own_permissions(how) ? in_world::permissions(p, to, how, ec)
                                    : std::filesystem::permissions(p, to, how, ec);
}
inline void permissions(const path& p, perms to, perm_options how) {
    if (!has_own_permissions(how)) {
        return std::filesystem::permissions(p, to, how);
    }
    std::error_code ec;
    in_world::permissions(p, to, how, ec);
    throw_if(ec, "coil::fs::permissions", p);
}

inline void resize_file(const path& p, std::uintmax_t size, std::error_code& ec) {
    return sys::is_in_world() ? in_world::resize_file(p, size, ec)
                              : std::filesystem::resize_file(p, size, ec);
}
inline void resize_file(const path& p, std::uintmax_t size) {
    if (!sys::is_in_world()) {
        return std::filesystem::resize_file(p, size);
    }
    std::error_code ec;
    in_world::resize_file(p, size, ec);
    throw_if(ec, "coil::fs::resize_file", p);
}

inline space_info space(const path& p, std::error_code& ec) {
    return sys::is_in_world() ? in_world::space(p, ec) : std::filesystem::space(p, ec);
}
inline space_info space(const path& p) {
    if (!sys::is_in_world()) {
        return std::filesystem::space(p);
    }
    std::error_code ec;
    space_info result = in_world::space(p, ec);
    throw_if(ec, "coil::fs::space", p);
    return result;
}

inline bool equivalent(const path& a, const path& b, std::error_code& ec) {
    return sys::is_in_world() ? in_world::equivalent(a, b, ec)
                              : std::filesystem::equivalent(a, b, ec);
}
inline bool equivalent(const path& a, const path& b) {
    if (!sys::is_in_world()) {
        return std::filesystem::equivalent(a, b);
    }
    std::error_code ec;
    bool result = in_world::equivalent(a, b, ec);
    throw_if(ec, "coil::fs::equivalent", a, b);
    return result;
}

inline path canonical(const path& p, std::error_code& ec) {
    return sys::is_in_world() ? in_world::canonical(p, ec) : std::filesystem::canonical(p, ec);
}
inline path canonical(const path& p) {
    if (!sys::is_in_world()) {
        return std::filesystem::canonical(p);
    }
    std::error_code ec;
    path result = in_world::canonical(p, ec);
    throw_if(ec, "coil::fs::canonical", p);
    return result;
}

inline path weakly_canonical(const path& p, std::error_code& ec) {
    return sys::is_in_world() ? in_world::weakly_canonical(p, ec)
                              : std::filesystem::weakly_canonical(p, ec);
}
inline path weakly_canonical(const path& p) {
    if (!sys::is_in_world()) {
        return std::filesystem::weakly_canonical(p);
    }
    std::error_code ec;
    path result = in_world::weakly_canonical(p, ec);
    throw_if(ec, "coil::fs::weakly_canonical", p);
    return result;
}

inline path relative(const path& p, const path& base, std::error_code& ec) {
    return sys::is_in_world() ? in_world::relative(p, base, ec)
                              : std::filesystem::relative(p, base, ec);
}
inline path relative(const path& p, const path& base) {
    if (!sys::is_in_world()) {
        return std::filesystem::relative(p, base);
    }
    std::error_code ec;
    path result = in_world::relative(p, base, ec);
    throw_if(ec, "coil::fs::relative", p, base);
    return result;
}

inline path proximate(const path& p, const path& base, std::error_code& ec) {
    return sys::is_in_world() ? in_world::proximate(p, base, ec)
                              : std::filesystem::proximate(p, base, ec);
}
inline path proximate(const path& p, const path& base) {
    if (!sys::is_in_world()) {
        return std::filesystem::proximate(p, base);
    }
    std::error_code ec;
    path result = in_world::proximate(p, base, ec);
    throw_if(ec, "coil::fs::proximate", p, base);
    return result;
}

inline void current_path(const path& p, std::error_code& ec) {
    return sys::is_in_world() ? in_world::current_path(p, ec)
                              : std::filesystem::current_path(p, ec);
}
inline void current_path(const path& p) {
    if (!sys::is_in_world()) {
        return std::filesystem::current_path(p);
    }
    std::error_code ec;
    in_world::current_path(p, ec);
    throw_if(ec, "coil::fs::current_path", p);
}

inline path relative(const path& p, std::error_code& ec) {
    return sys::is_in_world() ? in_world::relative(p, "/", ec) : std::filesystem::relative(p, ec);
}
inline path relative(const path& p) {
    return sys::is_in_world() ? stdfs::relative(p, "/") : std::filesystem::relative(p);
}

inline path proximate(const path& p, std::error_code& ec) {
    return sys::is_in_world() ? in_world::proximate(p, "/", ec) : std::filesystem::proximate(p, ec);
}
inline path proximate(const path& p) {
    return sys::is_in_world() ? stdfs::proximate(p, "/") : std::filesystem::proximate(p);
}

} // namespace stdfs

} // namespace coil::fs::detail
