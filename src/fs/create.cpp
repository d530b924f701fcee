#include "opening.hpp"
#include "owned_descriptor.hpp"
#include "stat.hpp"

#include <coil/fs/create.hpp>
#include <coil/io/directory.hpp>
#include <coil/io/file.hpp>

#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>

namespace coil::fs {

namespace {

constexpr ::mode_t every_permission = 0777;

/// Whether EEXIST is not an error: the standard accepts an existing directory.
bool names_directory(int result, const struct ::statx& st) noexcept {
    return result >= 0 && S_ISDIR(st.stx_mode);
}

task<io_result> make_directory(int dirfd, const path& name, ::mode_t mode) {
    return detail::ring_or_thread(
        uring::opcode::mkdirat, io::mkdirat(dirfd, name, mode),
        [dirfd, &name, mode] { return detail::sys::mkdirat(dirfd, name.c_str(), mode); });
}

constexpr int to_continue_from = O_PATH | O_DIRECTORY | O_CLOEXEC;

/// Opens a directory below `dirfd` to continue from: 0 or -errno. Links are followed.
task<io_result> open_directory(int dirfd, const path& name, detail::owned_descriptor& into) {
    int result = 0;
    if (coil::detail::required_loop().ring().supports(uring::opcode::openat)) [[likely]] {
        result = co_await io::openat(dirfd, name, to_continue_from);
        into = detail::owned_descriptor(result);
    } else {
        result = co_await detail::on_thread([dirfd, &name, &into] {
            const int fd = detail::sys::open_entry(dirfd, name.c_str(), to_continue_from);
            into = detail::owned_descriptor(fd);
            return fd;
        });
    }
    co_return result < 0 ? result : 0;
}

/// The same for a directory in `dirfd` that was missing before: a link that has taken its name
/// since is not followed.
task<io_result> open_created(int dirfd, const path& name, detail::owned_descriptor& into) {
    int result = -ENOSYS;
    if (coil::detail::required_loop().ring().supports(uring::opcode::openat2)) [[likely]] {
        const ::open_how how = detail::sys::how_to_open_entry(to_continue_from);
        result = co_await io::openat2(dirfd, name, &how, sizeof how);
        into = detail::owned_descriptor(result);
    }
    if (result == -ENOSYS || result == -EPERM || result == -EXDEV) {
        result = co_await detail::on_thread([dirfd, &name, &into] {
            const int fd =
                detail::sys::open_entry(dirfd, name.c_str(), to_continue_from | O_NOFOLLOW);
            into = detail::owned_descriptor(fd);
            return fd;
        });
    }
    co_return result < 0 ? result : 0;
}

/// Creates the directory in the open directory `dirfd`, or accepts an existing one; `made` says
/// which. An existing file of another type is EEXIST.
task<std::error_code> make_or_find(int dirfd, const path& name, ::mode_t mode, bool& made) {
    const int result = co_await make_directory(dirfd, name, mode);
    made = result >= 0;
    if (result != -EEXIST) {
        co_return detail::error_of(result);
    }
    struct ::statx st{};
    const int found = co_await detail::stat(dirfd, name, 0, STATX_TYPE, st);
    if (found == -ECANCELED) {
        co_return detail::error_of(found);
    }
    co_return detail::error_of(names_directory(found, st) ? 0 : result);
}

bool is_dot(const path& name) { return name.native() == "."; }
bool is_dot_dot(const path& name) { return name.native() == ".."; }

/// The missing part of a path below its deepest existing directory.
struct missing_part {
    detail::owned_descriptor above;
    int dirfd = AT_FDCWD;
    std::vector<path> names; ///< in reverse order: the last component first
};

/// Walks up from `p`, which ends in a name and does not exist.
task<std::error_code> find_missing(path p, missing_part& missing) {
    for (;;) {
        const path name = p.filename();
        if (!missing.names.empty() || (!is_dot(name) && !is_dot_dot(name))) {
            missing.names.push_back(name);
        }
        p = p.parent_path();
        if (p.empty()) {
            co_return std::error_code();
        }
        const int result = co_await open_directory(AT_FDCWD, p, missing.above);
        if (result >= 0) {
            missing.dirfd = missing.above;
            co_return std::error_code();
        }
        if (result == -ENOTDIR) { // p, an ancestor, or a link's target is not a directory
            struct ::statx st{};
            const int found = co_await detail::stat(AT_FDCWD, p, 0, STATX_TYPE, st);
            if (!detail::is_not_found(found)) {
                co_return detail::error_of(found < 0 ? found : result);
            }
        } else if (result != -ENOENT) {
            co_return detail::error_of(result);
        }
    }
}

/// Creates the missing directories, each relative to its parent's descriptor. A `..` may lead back
/// to directories that exist, until one has to be created again.
task<std::error_code> make_missing(missing_part& missing, bool& made) {
    bool was_missing = true; // what the next name refers to was missing
    while (!missing.names.empty()) {
        const path name = std::move(missing.names.back());
        missing.names.pop_back();
        if (!is_dot(name) && !is_dot_dot(name)) {
            const std::error_code error =
                co_await make_or_find(missing.dirfd, name, every_permission, made);
            if (error) {
                co_return error;
            }
            was_missing = was_missing || made;
        } else if (is_dot_dot(name)) {
            was_missing = false;
        }
        if (!missing.names.empty()) {
            // A component that is found here, although it was missing, has been created by another
            // process: it may be a link.
            detail::owned_descriptor next;
            int result = 0;
            if (is_dot(name) || !was_missing) {
                result = co_await open_directory(missing.dirfd, name, next);
            } else {
                result = co_await open_created(missing.dirfd, name, next);
            }
            if (result < 0) {
                co_return detail::error_of(result);
            }
            missing.above = std::move(next);
            missing.dirfd = missing.above;
        }
    }
    co_return std::error_code();
}

/// Precondition: `p` does not exist.
task<std::error_code> make_all(path p, bool& made) {
    // Without the trailing slash, mkdir(2) returns EEXIST for a file, too.
    if (p.has_relative_path() && !p.has_filename()) {
        p = p.parent_path();
    }
    std::error_code error = co_await make_or_find(AT_FDCWD, p, every_permission, made);
    if (error.value() == ENOENT || error.value() == ENOTDIR) {
        missing_part missing;
        error = co_await find_missing(std::move(p), missing);
        if (!error) {
            error = co_await make_missing(missing, made);
        }
    }
    co_return error;
}

} // namespace

task<bool> create_directory(path p, std::error_code& ec) {
    bool made = false;
    ec = co_await make_or_find(AT_FDCWD, p, every_permission, made);
    co_return made;
}
task<bool> create_directory(path p) {
    std::error_code ec;
    const bool made = co_await fs::create_directory(p, ec);
    detail::throw_if(ec, "coil::fs::create_directory", p);
    co_return made;
}

task<bool> create_directory(path p, path existing, std::error_code& ec) {
    struct ::statx st{};
    const int result = co_await detail::stat(AT_FDCWD, existing, 0, STATX_MODE, st);
    ec = detail::error_of(result);
    bool made = false;
    if (!ec) {
        constexpr ::mode_t permissions = 07777;
        ec = co_await make_or_find(AT_FDCWD, p, st.stx_mode & permissions, made);
    }
    co_return made;
}
task<bool> create_directory(path p, path existing) {
    std::error_code ec;
    const bool made = co_await fs::create_directory(p, std::move(existing), ec);
    detail::throw_if(ec, "coil::fs::create_directory", p);
    co_return made;
}

task<bool> create_directories(path p, std::error_code& ec) {
    if (p.empty()) {
        ec = std::make_error_code(std::errc::invalid_argument);
        co_return false;
    }
    struct ::statx st{};
    const int found = co_await detail::stat(AT_FDCWD, p, 0, STATX_TYPE, st);
    bool made = false;
    if (detail::is_not_found(found)) {
        ec = co_await make_all(std::move(p), made);
    } else if (found < 0) {
        ec = detail::error_of(found);
    } else {
        ec = detail::error_of(names_directory(found, st) ? 0 : -ENOTDIR);
    }
    co_return made && !ec;
}
task<bool> create_directories(path p) {
    std::error_code ec;
    const bool made = co_await fs::create_directories(p, ec);
    detail::throw_if(ec, "coil::fs::create_directories", p);
    co_return made;
}

} // namespace coil::fs
