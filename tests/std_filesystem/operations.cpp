// Implements the functions of std::filesystem with those of coil::fs. The dynamic linker prefers
// the definitions of a program to those of libstdc++.so, so tests of std::filesystem that are
// loaded as shared libraries call these. The types are the standard library's own.

#include "../../src/fs/standard_calls.hpp"
#include "judged.hpp"

#include <coil/coil.hpp>

#include <thread>

namespace coil_test::judged {

namespace {

const std::thread::id main_thread = std::this_thread::get_id();

} // namespace

bool& is_in_standard() noexcept {
    thread_local bool is = false;
    return is;
}

bool is_call_of_coil() noexcept { return std::this_thread::get_id() != main_thread; }

bool prefers_own() noexcept {
    static const bool is = [] {
        const char* const chosen = ::secure_getenv("COIL_JUDGED");
        return chosen != nullptr && std::string_view(chosen) == "own";
    }();
    return is;
}

} // namespace coil_test::judged

namespace judged = coil_test::judged;

// A function that coil::fs implements itself.
#define COIL_JUDGED(result, name, parameters, arguments, ...)                                      \
    result name parameters __VA_ARGS__ {                                                           \
        if (judged::is_in_standard()) {                                                            \
            return COIL_STANDARD(result, name, parameters) arguments;                              \
        }                                                                                          \
        return judged::run(coil::fs::name arguments);                                              \
    }
#define COIL_STANDARD(result, name, parameters)                                                    \
    judged::standard<static_cast<result(*) parameters>(&name)>

// A function for which coil::fs calls the standard library on its pool. `own` is the expression
// that calls coil's own definition.
#define COIL_JUDGED_ON_POOL(result, name, parameters, arguments, own, ...)                         \
    result name parameters __VA_ARGS__ {                                                           \
        if (!judged::is_in_standard() && !judged::is_call_of_coil()) {                             \
            return judged::run(coil::fs::name arguments);                                          \
        }                                                                                          \
        if (judged::prefers_own()) {                                                               \
            return own;                                                                            \
        }                                                                                          \
        return judged::call_standard(COIL_STANDARD(result, name, parameters),                      \
                                     COIL_UNWRAP arguments);                                       \
    }
#define COIL_UNWRAP(...) __VA_ARGS__

// The two forms of a function with one path and one with two.
#define COIL_JUDGED_1(result, name, ...)                                                           \
    COIL_JUDGED(result, name, (const path& p), (p))                                                \
    COIL_JUDGED(result, name, (const path& p, error_code& ec), (p, ec), __VA_ARGS__)
#define COIL_JUDGED_2(result, name, ...)                                                           \
    COIL_JUDGED(result, name, (const path& a, const path& b), (a, b))                              \
    COIL_JUDGED(result, name, (const path& a, const path& b, error_code& ec), (a, b, ec),          \
                __VA_ARGS__)
#define COIL_JUDGED_ON_POOL_1(result, name, ...)                                                   \
    COIL_JUDGED_ON_POOL(                                                                           \
        result, name, (const path& p), (p),                                                        \
        judged::or_throw([&](error_code& ec) { return own::name(p, ec); }, #name, p))              \
    COIL_JUDGED_ON_POOL(result, name, (const path& p, error_code& ec), (p, ec), own::name(p, ec),  \
                        __VA_ARGS__)
#define COIL_JUDGED_ON_POOL_2(result, name, ...)                                                   \
    COIL_JUDGED_ON_POOL(                                                                           \
        result, name, (const path& a, const path& b), (a, b),                                      \
        judged::or_throw([&](error_code& ec) { return own::name(a, b, ec); }, #name, a, b))        \
    COIL_JUDGED_ON_POOL(result, name, (const path& a, const path& b, error_code& ec), (a, b, ec),  \
                        own::name(a, b, ec), __VA_ARGS__)

namespace std::filesystem {

/// coil's own definitions of functions that coil::fs leaves to the standard library. They resolve
/// names as in a simulated world, whose current directory is "/".
namespace own {

using namespace coil::fs::detail::in_world;

inline path from_root(const path& p) { return p.empty() ? p : absolute(p); }
inline path canonical(const path& p, error_code& ec) {
    return coil::fs::detail::in_world::canonical(from_root(p), ec);
}
inline path weakly_canonical(const path& p, error_code& ec) {
    return coil::fs::detail::in_world::weakly_canonical(from_root(p), ec);
}
inline path relative(const path& p, const path& base, error_code& ec) {
    return coil::fs::detail::in_world::relative(from_root(p), from_root(base), ec);
}
inline path proximate(const path& p, const path& base, error_code& ec) {
    return coil::fs::detail::in_world::proximate(from_root(p), from_root(base), ec);
}

} // namespace own

COIL_JUDGED_1(file_status, status, noexcept)
COIL_JUDGED_1(file_status, symlink_status, noexcept)
COIL_JUDGED_1(uintmax_t, file_size, noexcept)
COIL_JUDGED_1(uintmax_t, hard_link_count, noexcept)
COIL_JUDGED_1(file_time_type, last_write_time, noexcept)
COIL_JUDGED_1(bool, create_directory, noexcept)
COIL_JUDGED_1(bool, create_directories)
COIL_JUDGED_1(bool, remove, noexcept)
COIL_JUDGED_1(uintmax_t, remove_all)
COIL_JUDGED_2(bool, create_directory, noexcept)
COIL_JUDGED_2(void, create_symlink, noexcept)
COIL_JUDGED_2(void, create_directory_symlink, noexcept)
COIL_JUDGED_2(void, create_hard_link, noexcept)
COIL_JUDGED_2(void, rename, noexcept)
COIL_JUDGED(path, temp_directory_path, (), ())
COIL_JUDGED(path, temp_directory_path, (error_code & ec), (ec))
COIL_JUDGED(void, copy, (const path& from, const path& to, copy_options options),
            (from, to, options))
COIL_JUDGED(void, copy, (const path& from, const path& to, copy_options options, error_code& ec),
            (from, to, options, ec))
COIL_JUDGED(bool, copy_file, (const path& from, const path& to, copy_options options),
            (from, to, options))
COIL_JUDGED(bool, copy_file,
            (const path& from, const path& to, copy_options options, error_code& ec),
            (from, to, options, ec))

COIL_JUDGED_ON_POOL_1(bool, is_empty)
COIL_JUDGED_ON_POOL_1(path, read_symlink)
COIL_JUDGED_ON_POOL_1(space_info, space, noexcept)
COIL_JUDGED_ON_POOL_1(path, canonical)
COIL_JUDGED_ON_POOL_1(path, weakly_canonical)
COIL_JUDGED_ON_POOL_2(void, copy_symlink, noexcept)
COIL_JUDGED_ON_POOL_2(bool, equivalent, noexcept)
COIL_JUDGED_ON_POOL_2(path, relative)
COIL_JUDGED_ON_POOL_2(path, proximate)
COIL_JUDGED_ON_POOL(void, resize_file, (const path& p, uintmax_t size), (p, size),
                    judged::or_throw([&](error_code& ec) { own::resize_file(p, size, ec); },
                                     "resize_file", p))
COIL_JUDGED_ON_POOL(void, resize_file, (const path& p, uintmax_t size, error_code& ec),
                    (p, size, ec), own::resize_file(p, size, ec), noexcept)
COIL_JUDGED_ON_POOL(void, last_write_time, (const path& p, file_time_type time), (p, time),
                    judged::or_throw([&](error_code& ec) { own::last_write_time(p, time, ec); },
                                     "last_write_time", p))
COIL_JUDGED_ON_POOL(void, last_write_time, (const path& p, file_time_type time, error_code& ec),
                    (p, time, ec), own::last_write_time(p, time, ec), noexcept)
COIL_JUDGED_ON_POOL(void, permissions, (const path& p, perms to, perm_options how), (p, to, how),
                    judged::or_throw([&](error_code& ec) { own::permissions(p, to, how, ec); },
                                     "permissions", p))
COIL_JUDGED_ON_POOL(void, permissions, (const path& p, perms to, perm_options how, error_code& ec),
                    (p, to, how, ec), own::permissions(p, to, how, ec), noexcept)

} // namespace std::filesystem
