#pragma once

#include "needs_fork.hpp"
#include "support/run.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

// Files of other users, and mounts that only this process sees.

namespace fs_test {

inline constexpr ::uid_t stranger = 12345;

inline bool set_owner(const std::filesystem::path& p, ::uid_t owner) {
    return ::lchown(p.c_str(), owner, owner) == 0;
}

inline struct ::stat status_of(const std::filesystem::path& p) {
    struct ::stat found{};
    EXPECT_EQ(::lstat(p.c_str(), &found), 0) << p;
    return found;
}
inline ::mode_t mode_of(const std::filesystem::path& p) { return status_of(p).st_mode & 07777U; }

/// Runs `f` in a process of the user `stranger`, without root's rights, and makes this user the
/// owner of `directory`. If this process does not belong to root, `f` runs as its own user.
inline std::string as_stranger(const std::filesystem::path& directory,
                               const std::function<std::string()>& f) {
    return coil_test::in_child([&]() -> std::string {
        if (::geteuid() == 0 && (!set_owner(directory, stranger) || ::setgroups(0, nullptr) != 0 ||
                                 ::setresgid(stranger, stranger, stranger) != 0 ||
                                 ::setresuid(stranger, stranger, stranger) != 0)) {
            return std::string("cannot change its user: ") + std::strerror(errno);
        }
        return f();
    });
}

/// Gives this process mounts of its own; returns the reason if it cannot.
inline std::string have_private_mounts() {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return std::string("SKIP: this process may not mount: ") + std::strerror(errno);
    }
    return "";
}

} // namespace fs_test
