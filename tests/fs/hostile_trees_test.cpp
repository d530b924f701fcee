#include "files.hpp"
#include "needs_fork.hpp"
#include "trees.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

// What another user has put into a directory does not turn the work elsewhere. The same with
// changes in the middle of the work: swapper_test.cpp.

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::content_of;
using coil_test::scratch;

constexpr ::uid_t stranger = 12345;

std::error_code error_of_write(const fs::path& p, fs::write_options options) {
    std::error_code ec;
    coil::run(fs::write_file(p, "attack", options, ec));
    return ec;
}

bool set_owner(const fs::path& p, ::uid_t owner) { return ::lchown(p.c_str(), owner, owner) == 0; }

/// A directory like /tmp.
void make_sticky(const fs::path& p) {
    stdfs::create_directory(p);
    ASSERT_EQ(::chmod(p.c_str(), 01777), 0);
}

TEST(FsHostileTrees, AtomicReplaceFollowsNoLinkThatTheKernelDoesNot) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root gives links away";
    }
    if (content_of("/proc/sys/fs/protected_symlinks") != "1\n") {
        GTEST_SKIP() << "fs.protected_symlinks is not 1: the kernel follows any link";
    }
    const scratch dir;
    make_sticky(dir / "tmp");
    coil_test::put(dir / "victim", "untouched");
    stdfs::create_symlink(dir / "victim", dir / "tmp" / "planted");
    stdfs::create_symlink(dir / "missing", dir / "tmp" / "dangling");
    stdfs::create_symlink("planted", dir / "tmp" / "own");
    ASSERT_TRUE(set_owner(dir / "tmp" / "planted", stranger));
    ASSERT_TRUE(set_owner(dir / "tmp" / "dangling", stranger));
    for (const char* const name : {"planted", "dangling", "own"}) {
        for (const fs::write_options& options : {fs::write_options(), fs::atomic_replace}) {
            EXPECT_EQ(error_of_write(dir / "tmp" / name, options), std::errc::permission_denied)
                << name << ' ' << static_cast<int>(options.mode);
        }
    }
    EXPECT_EQ(content_of(dir / "victim"), "untouched");
    EXPECT_FALSE(stdfs::exists(dir / "missing"));

    stdfs::remove(dir / "tmp" / "own");
    stdfs::create_symlink(dir / "victim", dir / "tmp" / "own");
    EXPECT_FALSE(error_of_write(dir / "tmp" / "own", fs::atomic_replace));
    EXPECT_EQ(content_of(dir / "victim"), "attack") << "one's own links are followed";
}

/// For this process a setting of proc_sys_fs(5) is 1. What is said: it cannot be.
std::string pretend(const fs::path& dir, const char* setting) {
    coil_test::put(dir / "one", "1\n");
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount((dir / "one").c_str(), (std::string("/proc/sys/fs/") + setting).c_str(), nullptr,
                MS_BIND, nullptr) != 0) {
        return std::string("SKIP: this process may not mount: ") + std::strerror(errno);
    }
    return "";
}

/// What the kernel cannot open, and the settings that its open(2) for reading does not heed.
TEST(FsHostileTrees, AtomicReplaceRepeatsTheChecksThatTheKernelCannotMake) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        make_sticky(dir / "tmp");
        stdfs::create_symlink(dir / "missing", dir / "tmp" / "dangling");
        stdfs::create_symlink(dir / "made", dir / "tmp" / "own");
        coil_test::put(dir / "tmp" / "file", "old");
        if (!set_owner(dir / "tmp" / "dangling", stranger) ||
            !set_owner(dir / "tmp" / "file", stranger)) {
            return "SKIP: only root gives files away";
        }
        for (const char* const setting : {"protected_symlinks", "protected_regular"}) {
            if (const std::string refusal = pretend(dir.path(), setting); !refusal.empty()) {
                return refusal;
            }
        }
        std::string wrong;
        for (const char* const name : {"dangling", "file"}) {
            if (error_of_write(dir / "tmp" / name, fs::atomic_replace) !=
                std::errc::permission_denied) {
                wrong += std::string(name) + " is replaced; ";
            }
        }
        if (error_of_write(dir / "tmp" / "own", fs::atomic_replace)) {
            wrong += "one's own link is refused; ";
        }
        return wrong;
    });
    if (complaint.starts_with("SKIP: ")) {
        GTEST_SKIP() << complaint.substr(6);
    }
    EXPECT_EQ(complaint, "");
    EXPECT_FALSE(stdfs::exists(dir / "missing"));
    EXPECT_EQ(content_of(dir / "tmp" / "file"), "old");
    EXPECT_EQ(content_of(dir / "made"), "attack");
}

TEST(FsHostileTrees, AtomicReplaceTakesNoFileThatTheKernelDoesNot) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root gives files away";
    }
    const scratch dir;
    make_sticky(dir / "tmp");
    for (const ::mode_t mode : {01777U, 01770U, 0777U}) {
        ASSERT_EQ(::chmod((dir / "tmp").c_str(), mode), 0);
        coil_test::put(dir / "tmp" / "f", "old");
        ASSERT_TRUE(set_owner(dir / "tmp" / "f", stranger));
        const std::error_code replaced = error_of_write(dir / "tmp" / "f", fs::atomic_replace);
        EXPECT_EQ(content_of(dir / "tmp" / "f"), replaced ? "old" : "attack");
        EXPECT_EQ(replaced, error_of_write(dir / "tmp" / "f", {})) << mode;
        stdfs::remove(dir / "tmp" / "f");
    }
}

TEST(FsHostileTrees, AtomicReplaceFindsTheFileBehindLinksOfAllKinds) {
    const scratch dir;
    stdfs::create_directories(dir / "a" / "b");
    coil_test::put(dir / "a" / "b" / "f", "old");
    stdfs::create_symlink("b/../b/f", dir / "a" / "one");
    stdfs::create_symlink(dir / "a" / "one", dir / "two");
    stdfs::create_directory_symlink("a", dir / "by");
    stdfs::create_symlink("by/b/none", dir / "dangling");
    stdfs::create_symlink("dangling", dir / "further");
    EXPECT_FALSE(error_of_write(dir / "two", fs::atomic_replace));
    EXPECT_EQ(content_of(dir / "a" / "b" / "f"), "attack");
    EXPECT_FALSE(error_of_write(dir / "further", fs::atomic_replace));
    EXPECT_EQ(content_of(dir / "a" / "b" / "none"), "attack");
    EXPECT_TRUE(stdfs::is_symlink(dir / "two") && stdfs::is_symlink(dir / "a" / "one") &&
                stdfs::is_symlink(dir / "further") && stdfs::is_symlink(dir / "dangling"));
}

TEST(FsHostileTrees, RemoveAllDoesNotEmptyWhatALinkWithASlashLeadsTo) {
    const scratch dir;
    for (const std::string name : {"link/", "link//", "link/.", "link/..", "link/./", "real/."}) {
        stdfs::create_directories(dir / "real" / "in");
        coil_test::put(dir / "real" / "in" / "file", "kept");
        stdfs::remove(dir / "link");
        stdfs::create_directory_symlink("real", dir / "link");
        std::error_code ec;
        EXPECT_EQ(coil::run(fs::remove_all(dir.path().native() + "/" + name, ec)),
                  static_cast<std::uintmax_t>(-1));
        EXPECT_EQ(ec, name.starts_with("link//") || name == "link/" ? std::errc::not_a_directory
                                                                    : std::errc::invalid_argument)
            << name;
        EXPECT_EQ(content_of(dir / "real" / "in" / "file"), "kept") << name;
        EXPECT_TRUE(stdfs::is_symlink(dir / "link")) << name;
    }
    EXPECT_EQ(coil::run(fs::remove_all(dir.path().native() + "/real/")), 3U);
    EXPECT_EQ(coil::run(fs::remove_all(dir / "link")), 1U);
}

} // namespace
