#include "replacement.hpp"

#include "call.hpp"

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

constexpr int most_links = 40; // as the kernel follows
constexpr int most_names = 100;

std::string link_target(const char* name, int& error) {
    std::array<char, PATH_MAX> target; // NOLINT(*-member-init): only what was read is used
    const int n = sys::readlinkat(AT_FDCWD, name, target.data(), target.size());
    error = std::min(n, 0);
    return n < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(n));
}

/// With the slash; empty when there is none.
std::string directory_part(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    return slash == std::string::npos ? std::string() : name.substr(0, slash + 1);
}

/// What the kernel would open by that name, which need not be there. −errno in `error`.
std::string without_links(std::string name, int& error) {
    for (int links = 0; links <= most_links; ++links) {
        std::string target = link_target(name.c_str(), error);
        if (error == -EINVAL || error == -ENOENT) { // no link
            error = 0;
            return name;
        }
        if (error < 0) {
            return name;
        }
        name = target.starts_with('/') ? std::move(target) : directory_part(name).append(target);
    }
    error = -ELOOP;
    return name;
}

/// To be synchronized, too, if it may be read.
file open_directory(const std::string& name, int& error) {
    const char* const called = name.empty() ? "." : name.c_str();
    int fd = sys::openat(AT_FDCWD, called, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd == -EACCES) {
        fd = sys::openat(AT_FDCWD, called, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    error = fd < 0 ? fd : 0;
    return file(fd);
}

/// 0 also where a directory cannot be synchronized.
int sync_directory(int fd) noexcept {
    const int r = sys::fsync(fd);
    return r == -EBADF || r == -EINVAL || r == -EOPNOTSUPP ? 0 : r;
}

/// The same every time where a world is to be played again.
std::string temporary_name(int tries) {
    std::uint64_t number = 0;
    if (uring::kernel* const world = coil::detail::current_world()) {
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

std::string proc_name(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

/// As the old file is; what its owner's bits mean for another owner is not carried over.
int take_after(int fd, const struct ::stat& old) noexcept {
    struct ::stat made{};
    if (const int r = sys::fstat(fd, &made); r < 0) {
        return r;
    }
    ::mode_t mode = old.st_mode & 07777U;
    if (made.st_uid != old.st_uid || made.st_gid != old.st_gid) {
        if (sys::fchown(fd, old.st_uid, old.st_gid) != 0) {
            mode &= ~static_cast<::mode_t>(S_ISUID | S_ISGID);
            // The group alone may be permitted.
            if (sys::fchown(fd, static_cast<::uid_t>(-1), old.st_gid) != 0) {
                mode &= 0707U | ((mode & 0007U) << 3U); // not more for another group than for all
            }
        }
    }
    return sys::fchmod(fd, mode);
}

} // namespace

replacement::~replacement() { discard(); }

void replacement::discard() noexcept {
    if (!temporary_.empty()) {
        sys::unlinkat(directory_.native_handle(), temporary_.c_str(), 0);
        temporary_.clear();
    }
    content_ = file();
}

int replacement::begin(std::string target, ::mode_t mode) {
    if (const int r = find(std::move(target)); r < 0) {
        return r;
    }
    struct ::stat old{};
    int r = sys::fstatat(directory_.native_handle(), leaf_.c_str(), &old, AT_SYMLINK_NOFOLLOW);
    if (r == -ENOENT) {
        return make(mode);
    }
    if (r < 0) {
        return r;
    }
    if (!S_ISREG(old.st_mode)) {
        return S_ISDIR(old.st_mode) ? -EISDIR : -EINVAL;
    }
    r = sys::faccessat(directory_.native_handle(), leaf_.c_str(), W_OK, AT_EACCESS);
    if (r == 0) {
        r = make(0600);
    }
    return r < 0 ? r : take_after(content_.native_handle(), old);
}

int replacement::find(std::string target) {
    int error = 0;
    target = without_links(std::move(target), error);
    if (error < 0) {
        return error;
    }
    const std::string directory = directory_part(target);
    leaf_ = target.substr(directory.size());
    directory_ = open_directory(directory, error);
    if (error < 0) {
        return error;
    }
    if (leaf_.empty()) {
        return directory.empty() ? -ENOENT : -EISDIR;
    }
    return 0;
}

/// Best without a name.
int replacement::make(::mode_t mode) {
    const int directory = directory_.native_handle();
    if (sys::faccessat(AT_FDCWD, "/proc/self/fd", X_OK, 0) == 0) {
        content_ = file(sys::openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
        if (content_) {
            return 0;
        }
    }
    for (int tries = 0; tries < most_names; ++tries) {
        std::string called = temporary_name(tries);
        const int fd = sys::openat(directory, called.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
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

/// A link never takes the place of a name that is there: only a rename does.
int replacement::name() {
    const std::string opened = proc_name(content_.native_handle());
    for (int tries = 0; tries < most_names; ++tries) {
        std::string called = temporary_name(tries);
        const int r = sys::linkat(AT_FDCWD, opened.c_str(), directory_.native_handle(),
                                  called.c_str(), AT_SYMLINK_FOLLOW);
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
    if (temporary_.empty()) {
        if (const int r = name(); r < 0) {
            return r;
        }
    }
    const int directory = directory_.native_handle();
    if (const int r = sys::renameat(directory, temporary_.c_str(), directory, leaf_.c_str());
        r < 0) {
        return r;
    }
    temporary_.clear();
    return sync_directory(directory);
}

int sync_directory_of(int fd, const path& opened_as) {
    int error = 0;
    std::string name = link_target(proc_name(fd).c_str(), error);
    if (error < 0) {
        name = opened_as.native();
    }
    const file directory = open_directory(directory_part(name), error);
    return error < 0 ? error : sync_directory(directory.native_handle());
}

} // namespace coil::fs::detail
