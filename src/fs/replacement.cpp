#include "replacement.hpp"

#include "opening.hpp"
#include "owned_descriptor.hpp"
#include "ring_or_pool.hpp"
#include "stat.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace coil::fs::detail {

namespace {

constexpr int max_links = 40;   // the limit of the kernel
constexpr int max_checks = 100; // for a name that other processes keep replacing

/// The content of a symbolic link; -errno in `error`. With an empty name, `at` is the link.
std::string link_target(int at, const char* name, int& error) {
    std::array<char, PATH_MAX> target; // NOLINT(*-member-init): only what was read is used
    const int n = sys::readlinkat(at, name, target.data(), target.size());
    error = std::min(n, 0);
    return n < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(n));
}

/// The directory of a name, with the trailing slash; empty if the name has none.
std::string directory_part(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    return slash == std::string::npos ? std::string() : name.substr(0, slash + 1);
}

/// Opens a directory. If it is not readable, the descriptor cannot be used for fsync(2).
file open_directory(const std::string& name, int& error) {
    const char* const called = name.empty() ? "." : name.c_str();
    int fd = sys::open_path(called, O_RDONLY | O_DIRECTORY);
    if (fd == -EACCES) {
        fd = sys::open_path(called, O_PATH | O_DIRECTORY);
    }
    error = fd < 0 ? fd : 0;
    return file(fd);
}

/// Returns 0 or -errno; also 0 if the file system cannot synchronize a directory.
int sync_directory(int fd) noexcept {
    const int r = sys::fsync(fd);
    return r == -EBADF || r == -EINVAL || r == -EOPNOTSUPP ? 0 : r;
}

/// The value of fs.protected_symlinks or fs.protected_regular. If it cannot be read, the strictest
/// value, because the kernel may enforce it nevertheless.
int protection(const char* name) {
    const std::string called = std::string("/proc/sys/fs/") + name;
    const owned_descriptor setting(sys::open_path(called.c_str(), O_RDONLY));
    char digit = '2';
    return setting >= 0 && sys::pread(setting, &digit, 1, 0) == 1 ? digit - '0' : 2;
}

/// Whether the kernel's protection (proc_sys_fs(5)), if it is on, applies to the file: it is in a
/// sticky directory and belongs neither to this user nor to the directory's owner.
bool is_mistrusted(const struct ::stat& found, const struct ::stat& directory) noexcept {
    return (directory.st_mode & S_ISVTX) != 0 && found.st_uid != directory.st_uid &&
           found.st_uid != sys::effective_user();
}

/// Whether names in the directory can only be added (chattr(1)): none can be renamed or removed.
bool is_append_only(int directory) noexcept {
    struct ::statx found{};
    return sys::statx(directory, "", AT_EMPTY_PATH, STATX_TYPE, &found) == 0 &&
           (found.stx_attributes & STATX_ATTR_APPEND) != 0;
}

/// The content of a dangling link, which the kernel cannot open. Errors: EACCES if the kernel's
/// protection, which is checked here, refuses the link; ENOENT if it no longer exists.
std::string follow_dangling(int directory, const char* leaf, int& error) {
    const owned_descriptor link(sys::open_entry(directory, leaf, O_PATH | O_NOFOLLOW));
    struct ::stat found{};
    struct ::stat above{};
    error = link < 0 ? int(link) : sys::fstat(link, &found);
    error = error < 0 ? error : sys::fstat(directory, &above);
    if (error < 0) {
        return {};
    }
    if (!S_ISLNK(found.st_mode)) {
        error = -EEXIST;
        return {};
    }
    if ((above.st_mode & S_IWOTH) != 0 && is_mistrusted(found, above) &&
        protection("protected_symlinks") > 0) {
        error = -EACCES;
        return {};
    }
    return link_target(link, "", error);
}

} // namespace

std::string temporary_name(int tries) {
    std::uint64_t number = 0;
    if (uring::backend* const world = coil::detail::current_world()) {
        number = static_cast<std::uint64_t>(world->now().time_since_epoch().count() + tries);
    } else if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
        ::timespec now{};
        ::clock_gettime(CLOCK_REALTIME, &now);
        number = static_cast<std::uint64_t>(now.tv_nsec) << 32U ^
                 static_cast<std::uint64_t>(now.tv_sec) ^ static_cast<std::uint64_t>(::gettid());
    }
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
    return std::string(".coil-") + digits + ".tmp";
}

replacement::~replacement() { discard(); }

void replacement::discard() noexcept {
    if (!temporary_.empty()) {
        sys::unlinkat(directory_.native_handle(), temporary_.c_str(), 0);
        temporary_.clear();
    }
    content_ = file();
}

int replacement::begin(const std::string& target, ::mode_t mode) {
    if (const int r = find(target); r < 0) {
        return r;
    }
    if (!is_there_) {
        return make(mode);
    }
    int r = may_be_replaced();
    if (r == 0) {
        r = make(0600);
    }
    if (r == 0) {
        read_attributes();
        r = attributes_.give_all(content_.native_handle());
    }
    old_file_ = owned_descriptor();
    return r;
}

/// The access control list of a file that is open with O_PATH can only be read through /proc. If
/// that fails, the file is opened for reading.
void replacement::read_attributes() {
    attributes_ = attributes(old_file_, old_);
    if (attributes_.is_list_known()) {
        return;
    }
    constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    const owned_descriptor readable(
        sys::open_entry(directory_.native_handle(), leaf_.c_str(), flags));
    struct ::stat found{};
    if (readable >= 0 && sys::fstat(readable, &found) == 0 && is_same(found, old_)) {
        attributes_ = attributes(readable, old_);
    }
}

int replacement::find(const std::string& target) {
    for (int checks = 0; checks < max_checks; ++checks) {
        const int r = check(target);
        if (r != -EAGAIN) {
            return r;
        }
    }
    return -EAGAIN;
}

/// The kernel resolves the name, so that its refusals apply (fs.protected_symlinks); the location
/// of the opened file is determined afterwards. EAGAIN: the file was replaced meanwhile.
int replacement::check(const std::string& target) {
    old_file_ = owned_descriptor(sys::open_path(target.c_str(), O_PATH));
    if (old_file_ == -ENOENT) {
        return find_missing(target);
    }
    if (old_file_ < 0) {
        return old_file_;
    }
    if (const int r = sys::fstat(old_file_, &old_); r < 0) {
        return r;
    }
    if (!S_ISREG(old_.st_mode)) {
        return S_ISDIR(old_.st_mode) ? -EISDIR : -EINVAL;
    }
    is_there_ = true;
    if (const int r = look_beside(target); r != -EAGAIN) {
        return r;
    }
    int error = 0;
    const std::string real = link_target(AT_FDCWD, sys::proc_name(old_file_).c_str(), error);
    if (error == 0) {
        return place(real) == 0 && is_at_its_place() ? 0 : -EAGAIN;
    }
    // Without /proc: resolves links here, and verifies that the result is the same file.
    std::string name = target;
    for (int links = 0; links < max_links; ++links) {
        const std::string next = link_target(AT_FDCWD, name.c_str(), error);
        if (error < 0) {
            break;
        }
        name = next.starts_with('/') ? next : directory_part(name).append(next);
    }
    return place(name) == 0 && is_at_its_place() ? 0 : -EAGAIN;
}

/// For the usual case that the last component is not a link. EAGAIN: it is a link.
int replacement::look_beside(const std::string& target) {
    const int r = place(target);
    return r < 0 ? r : is_at_its_place() ? 0 : -EAGAIN;
}

/// Sets the directory and the name in it.
int replacement::place(const std::string& name) {
    const std::string directory = directory_part(name);
    leaf_ = name.substr(directory.size());
    int error = 0;
    directory_ = open_directory(directory, error);
    if (error == 0 && leaf_.empty()) {
        error = directory.empty() ? -ENOENT : -EISDIR;
    }
    return error;
}

bool replacement::is_at_its_place() const noexcept {
    struct ::stat found{};
    return sys::fstatat(directory_.native_handle(), leaf_.c_str(), &found, AT_SYMLINK_NOFOLLOW) ==
               0 &&
           is_same(found, old_);
}

/// For a file that does not exist, or is a dangling link. EAGAIN: it exists by now.
int replacement::find_missing(std::string target) {
    is_there_ = false;
    for (int links = 0; links <= max_links; ++links) {
        if (const int r = place(target); r < 0) {
            return r;
        }
        int error = 0;
        const std::string next = follow_dangling(directory_.native_handle(), leaf_.c_str(), error);
        if (error < 0) {
            return error == -ENOENT ? 0 : error == -EEXIST ? -EAGAIN : error;
        }
        target = next.starts_with('/') ? next : directory_part(target).append(next);
    }
    return -ELOOP;
}

/// The error with which open(2) for writing with O_CREAT would refuse the file, or 0.
int replacement::may_be_replaced() const noexcept {
    struct ::stat above{};
    const int directory = directory_.native_handle();
    if (const int r = sys::fstat(directory, &above); r < 0) {
        return r;
    }
    if (is_mistrusted(old_, above)) {
        const int level = protection("protected_regular");
        if ((level >= 1 && (above.st_mode & S_IWOTH) != 0) ||
            (level >= 2 && (above.st_mode & S_IWGRP) != 0)) {
            return -EACCES;
        }
    }
    const int r = sys::faccessat(directory, leaf_.c_str(), W_OK, AT_EACCESS);
    return r == 0 && is_append_only(directory) ? -EPERM : r;
}

/// Creates the new file, preferably without a name.
int replacement::make(::mode_t mode) {
    const int directory = directory_.native_handle();
    if (sys::faccessat(AT_FDCWD, "/proc/self/fd", X_OK, 0) == 0) {
        content_ = file(sys::open_entry(directory, ".", O_TMPFILE | O_WRONLY, mode));
        if (content_) {
            return 0;
        }
    }
    if (is_append_only(directory)) { // a temporary name could not be removed
        return -EPERM;
    }
    for (int tries = 0; tries < max_temporary_names; ++tries) {
        std::string called = temporary_name(tries);
        const int fd =
            sys::open_entry(directory, called.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode);
        if (fd >= 0) {
            content_ = file(fd);
            temporary_ = std::move(called);
            return 0;
        }
        if (fd != -EEXIST) {
            return fd;
        }
    }
    return -EEXIST;
}

/// Gives the new file its name or, as linkat(2) cannot replace an existing name, a temporary one
/// for rename(2).
int replacement::name() {
    const sys::proc_name opened(content_.native_handle());
    const int directory = directory_.native_handle();
    if (!is_there_) {
        const int r =
            sys::linkat(AT_FDCWD, opened.c_str(), directory, leaf_.c_str(), AT_SYMLINK_FOLLOW);
        if (r != -EEXIST || is_append_only(directory)) {
            return r;
        }
    }
    for (int tries = 0; tries < max_temporary_names; ++tries) {
        std::string called = temporary_name(tries);
        const int r =
            sys::linkat(AT_FDCWD, opened.c_str(), directory, called.c_str(), AT_SYMLINK_FOLLOW);
        if (r == 0) {
            temporary_ = std::move(called);
        }
        if (r != -EEXIST) {
            return r;
        }
    }
    return -EEXIST;
}

int replacement::commit() {
    if (is_there_ && (old_.st_mode & set_id_bits) != 0) {
        int r = attributes_.give_id_bits(content_.native_handle());
        r = r < 0 ? r : sys::fsync(content_.native_handle());
        if (r < 0) {
            return r;
        }
    }
    if (temporary_.empty()) {
        if (const int r = name(); r < 0) {
            return r;
        }
    }
    const int directory = directory_.native_handle();
    if (!temporary_.empty()) {
        if (const int r = sys::renameat(directory, temporary_.c_str(), directory, leaf_.c_str());
            r < 0) {
            return r;
        }
        temporary_.clear();
    }
    return sync_directory(directory);
}

int sync_directory_of(int fd, const path& opened_as) {
    int error = 0;
    std::string name = link_target(AT_FDCWD, sys::proc_name(fd).c_str(), error);
    if (error < 0) {
        name = opened_as.native();
    }
    const file directory = open_directory(directory_part(name), error);
    return error < 0 ? error : sync_directory(directory.native_handle());
}

} // namespace coil::fs::detail
