#include "standard_calls.hpp"

#include "opening.hpp"
#include "owned_descriptor.hpp"
#include "stat.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <limits>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace coil::fs::detail::in_world {

namespace {

constexpr auto unknown = static_cast<std::uintmax_t>(-1);

/// Whether equivalent() fails if one of the files does not exist (LWG 2937, in libstdc++ since GCC
/// 14).
#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE < 14
constexpr bool one_missing_is_an_error = false;
#else
constexpr bool one_missing_is_an_error = true;
#endif

file_status status_of(const path& p, struct ::stat& st, std::error_code& ec, int flags = 0) {
    const int result = sys::fstatat(AT_FDCWD, p.c_str(), &st, flags);
    ec = error_of(result);
    return result < 0 ? file_status(is_not_found(result) ? file_type::not_found : file_type::none)
                      : file_status(type_of_mode(st.st_mode),
                                    static_cast<perms>(st.st_mode) & perms::mask);
}

bool is_there(const path& p, std::error_code& ec) {
    struct ::stat st{};
    const file_status s = status_of(p, st, ec);
    if (std::filesystem::status_known(s)) {
        ec.clear();
    }
    return std::filesystem::exists(s);
}

/// Whether a directory has no entries except "." and "..".
bool is_empty_directory(const path& p, std::error_code& ec) {
    constexpr std::size_t length_at = 16;
    const owned_descriptor fd(sys::open_path(p.c_str(), O_RDONLY | O_DIRECTORY));
    std::array<std::byte, 4096> records{};
    const int size = fd < 0 ? static_cast<int>(fd) : sys::getdents64(fd, records.data(), 4096);
    ec = error_of(size);
    int names = 0;
    for (int at = 0; at < size; ++names) {
        at += std::to_integer<int>(records.at(static_cast<std::size_t>(at) + length_at));
    }
    return !ec && names <= 2;
}

} // namespace

bool is_empty(const path& p, std::error_code& ec) {
    struct ::stat st{};
    const file_status s = status_of(p, st, ec);
    if (ec) {
        return false;
    }
    if (std::filesystem::is_directory(s)) {
        return is_empty_directory(p, ec);
    }
    if (!std::filesystem::is_regular_file(s)) {
        ec = std::make_error_code(std::errc::not_supported);
    }
    return !ec && st.st_size == 0;
}

path read_symlink(const path& p, std::error_code& ec) {
    std::array<char, PATH_MAX> target; // NOLINT(*-member-init): only what was read is used
    const int n = sys::readlinkat(AT_FDCWD, p.c_str(), target.data(), target.size());
    ec = error_of(n);
    return n < 0 ? path() : path(target.begin(), target.begin() + n);
}

void copy_symlink(const path& from, const path& to, std::error_code& ec) {
    const path target = in_world::read_symlink(from, ec);
    if (!ec) {
        ec = error_of(sys::symlinkat(target.c_str(), AT_FDCWD, to.c_str()));
    }
}

void last_write_time(const path& p, file_time_type to, std::error_code& ec) {
    using namespace std::chrono;
    const auto time = file_time_type::clock::to_sys(to).time_since_epoch();
    const auto whole = floor<seconds>(time);
    const std::array<::timespec, 2> times{
        ::timespec{0, UTIME_OMIT},
        ::timespec{static_cast<::time_t>(whole.count()),
                   static_cast<long>(duration_cast<nanoseconds>(time - whole).count())}};
    ec = error_of(sys::utimensat(AT_FDCWD, p.c_str(), times.data(), 0));
}

void permissions(const path& p, perms to, perm_options how, std::error_code& ec) {
    const auto has = [how](perm_options one) { return (how & one) == one; };
    const bool adds = has(perm_options::add);
    const bool removes = has(perm_options::remove);
    const bool keeps_link = has(perm_options::nofollow);
    if (int{has(perm_options::replace)} + int{adds} + int{removes} != 1) {
        ec = std::make_error_code(std::errc::invalid_argument);
        return;
    }
    to &= perms::mask;
    int flags = 0;
    if (adds || removes || keeps_link) {
        struct ::stat st{};
        const file_status s = status_of(p, st, ec, keeps_link ? AT_SYMLINK_NOFOLLOW : 0);
        if (ec) {
            return;
        }
        to = adds ? to | s.permissions() : removes ? s.permissions() & ~to : to;
        flags = keeps_link ? AT_SYMLINK_NOFOLLOW : 0; // even if it becomes a link meanwhile
    }
    ec = error_of(sys::fchmodat(AT_FDCWD, p.c_str(), static_cast<::mode_t>(to), flags));
}

void resize_file(const path& p, std::uintmax_t size, std::error_code& ec) {
    if (size > static_cast<std::uintmax_t>(std::numeric_limits<::off_t>::max())) {
        ec = std::make_error_code(std::errc::invalid_argument);
        return;
    }
    const owned_descriptor fd(sys::open_path(p.c_str(), O_WRONLY));
    ec = error_of(fd < 0 ? static_cast<int>(fd) : sys::ftruncate(fd, static_cast<::off_t>(size)));
}

space_info space(const path& p, std::error_code& ec) {
    struct ::statvfs found{};
    ec = error_of(sys::statvfs(p.c_str(), &found));
    if (ec) {
        return {unknown, unknown, unknown};
    }
    return {found.f_blocks * found.f_frsize, found.f_bfree * found.f_frsize,
            found.f_bavail * found.f_frsize};
}

bool equivalent(const path& a, const path& b, std::error_code& ec) {
    struct ::stat st_a{};
    struct ::stat st_b{};
    std::error_code error_a;
    std::error_code error_b;
    const file_status of_a = status_of(a, st_a, error_a);
    const file_status of_b = status_of(b, st_b, error_b);
    const bool has_a = std::filesystem::exists(of_a);
    const bool has_b = std::filesystem::exists(of_b);
    ec.clear();
    if (!has_a && !has_b) {
        ec = std::make_error_code(std::errc::no_such_file_or_directory);
        return false;
    }
    if (!has_a || !has_b) {
        const std::error_code error = has_a ? error_b : error_a;
        ec = one_missing_is_an_error ? std::make_error_code(std::errc::no_such_file_or_directory)
             : is_not_found(-error.value()) ? std::error_code()
                                            : error;
        return false;
    }
    const bool other_a = std::filesystem::is_other(of_a);
    const bool other_b = std::filesystem::is_other(of_b);
    if (other_a && other_b) {
        ec = std::make_error_code(std::errc::not_supported);
    }
    return !other_a && !other_b && st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

/// The path has been resolved once by the kernel, so it is valid: what remains is to resolve the
/// links.
path canonical(const path& p, std::error_code& ec) {
    if (p.empty()) { // like libstdc++
        ec = std::make_error_code(std::errc::invalid_argument);
        return {};
    }
    struct ::stat st{};
    status_of(p, st, ec);
    if (ec) {
        return {};
    }
    path result = "/";
    path rest = p.relative_path();
    while (!rest.empty()) {
        const path name = *rest.begin();
        path behind;
        for (auto i = std::next(rest.begin()); i != rest.end(); ++i) {
            behind /= *i;
        }
        rest = std::move(behind);
        if (name == "..") {
            result = result.parent_path();
        } else if (name != "." && !name.empty()) {
            const path target = in_world::read_symlink(result / name, ec);
            if (ec.value() == EINVAL) {
                ec.clear();
                result /= name;
            } else if (ec) {
                return {};
            } else {
                result = target.is_absolute() ? path("/") : result;
                rest = target.relative_path() / rest;
            }
        }
    }
    return result;
}

path weakly_canonical(const path& p, std::error_code& ec) {
    if (is_there(p, ec)) {
        return in_world::canonical(p, ec);
    }
    if (ec) {
        return {};
    }
    path result;
    auto name = p.begin();
    for (; name != p.end(); ++name) {
        path longer = result / *name;
        if (!is_there(longer, ec)) {
            break;
        }
        result = std::move(longer);
    }
    if (!ec && !result.empty()) {
        result = in_world::canonical(result, ec);
    }
    if (ec) {
        return {};
    }
    for (; name != p.end(); ++name) {
        result /= *name;
    }
    return result.lexically_normal();
}

path relative(const path& p, const path& base, std::error_code& ec) {
    const path from = in_world::weakly_canonical(p, ec);
    const path to = ec ? path() : in_world::weakly_canonical(base, ec);
    return ec ? path() : from.lexically_relative(to);
}

path proximate(const path& p, const path& base, std::error_code& ec) {
    const path from = in_world::weakly_canonical(p, ec);
    const path to = ec ? path() : in_world::weakly_canonical(base, ec);
    return ec ? path() : from.lexically_proximate(to);
}

void current_path(const path& /*p*/, std::error_code& ec) {
    ec = std::make_error_code(std::errc::operation_not_supported);
}

} // namespace coil::fs::detail::in_world
