#include "access_list.hpp"
#include "files.hpp"
#include "libc_calls.hpp"
#include "other_users.hpp"
#include "support/seccomp.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include <grp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Access rights that a copy or a replacement could lose, or grant by mistake.

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::content_of;
using coil_test::put;
using coil_test::scratch;
namespace stdfs = std::filesystem;

constexpr ::uid_t other_user = 23456;
constexpr ::gid_t team = 34567;

/// Runs `f` in a process of the user `stranger`, a member of the group `team`.
std::string in_the_team(const std::function<void()>& f) {
    return coil_test::in_child([&]() -> std::string {
        if (::setgroups(1, &team) != 0 || ::setresgid(stranger, stranger, stranger) != 0 ||
            ::setresuid(stranger, stranger, stranger) != 0) {
            return "cannot change the user";
        }
        f();
        return "";
    });
}

TEST(FsKeptRights, AnInheritedListIsRemovedAlsoIfTheOwnerCannotBeKept) {
    FS_TEST_NEEDS_FORK();
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can run a process of another user";
    }
    const scratch dir;
    const access_list inherited{
        {of_owner, 7}, {of_user, 6, other_user}, {of_group, 0}, {of_mask, 6}, {of_others, 0}};
    ::chmod(dir.path().c_str(), 0755);
    for (const char* const name : {"from", "replaced", "to"}) {
        stdfs::create_directory(dir / name);
        ASSERT_TRUE(set_owner(dir / name, stranger));
    }
    for (const char* const name : {"from/f", "replaced/f"}) {
        put(dir / name, "old");
        ASSERT_EQ(::chown((dir / name).c_str(), 111, team), 0);
        ASSERT_EQ(::chmod((dir / name).c_str(), 0660), 0);
    }
    if (!set_access_list(dir / "replaced", inherited, true) ||
        !set_access_list(dir / "to", inherited, true)) {
        GTEST_SKIP() << "the file system has no access control lists";
    }
    EXPECT_EQ(in_the_team([&] {
                  coil::run(fs::write_file(dir / "replaced/f", "new", fs::atomic_replace));
                  fs::copy_tree_options options;
                  options.owner = true;
                  coil::run(fs::copy_tree(dir / "from", dir / "to/copy", options));
              }),
              "");
    for (const char* const name : {"replaced/f", "to/copy/f"}) {
        EXPECT_EQ(access_list_of(dir / name), "") << name;
        EXPECT_EQ(mode_of(dir / name), 0660U) << name;
        EXPECT_EQ(status_of(dir / name).st_gid, team) << name;
    }
    EXPECT_EQ(content_of(dir / "replaced/f"), "new");
}

TEST(FsKeptRights, CopyTreeWithTimesKeepsTheSetGroupIdBitOfItsTargets) {
    const scratch dir;
    for (const char* const name : {"from", "from/d", "from/new", "to", "to/d"}) {
        stdfs::create_directory(dir / name);
        ASSERT_EQ(::chmod((dir / name).c_str(), 0755), 0);
    }
    ASSERT_EQ(::chmod((dir / "to").c_str(), 02700), 0);
    ASSERT_EQ(::chmod((dir / "to/d").c_str(), 02700), 0);
    fs::copy_tree_options options;
    options.times = true;
    coil::run(fs::copy_tree(dir / "from", dir / "to", options));
    for (const char* const name : {"to", "to/d", "to/new"}) {
        EXPECT_EQ(mode_of(dir / name), 02755U) << name;
    }
}

/// The modes of copies of files with the modes 0755, 0664 and 0640, while reading access control
/// lists fails with `error`.
std::string modes_of_copies(unsigned error) {
    const scratch dir;
    return coil_test::in_child([&]() -> std::string {
        if (!coil_test::forbid(SYS_fgetxattr, error) || !coil_test::forbid(SYS_getxattr, error)) {
            return "SKIP: no seccomp filter can be installed";
        }
        std::string all;
        for (const ::mode_t mode : {0755U, 0664U, 0640U}) {
            put(dir / "f", "x");
            ::chmod((dir / "f").c_str(), mode);
            coil::run(fs::copy_file(dir / "f", dir / "copy", fs::copy_options::overwrite_existing));
            coil::run(fs::write_file(dir / "f", "y", fs::atomic_replace));
            char text[32];
            std::snprintf(text, sizeof text, "%o %o, ", mode_of(dir / "copy"), mode_of(dir / "f"));
            all += text;
        }
        return all;
    });
}

TEST(FsKeptRights, BehindAFilterTheGroupGetsNoMoreThanOthers) {
    FS_TEST_NEEDS_FORK();
    for (const unsigned error : {EPERM, ENOSYS}) {
        const std::string modes = modes_of_copies(error);
        if (modes.starts_with("SKIP: ")) {
            GTEST_SKIP() << modes.substr(6);
        }
        EXPECT_EQ(modes, "755 755, 644 644, 600 600, ") << error;
    }
    EXPECT_EQ(modes_of_copies(EIO), "700 700, 600 600, 600 600, "); // it may have a list
}

TEST(FsKeptRights, CreateDirectoriesFollowsExistingLinksBehindDots) {
    const scratch dir;
    stdfs::create_directory(dir / "d");
    stdfs::create_directory_symlink("d", dir / "link");
    std::error_code ec;
    EXPECT_TRUE(coil::run(fs::create_directories(dir / "new/../link/x/y", ec)));
    EXPECT_EQ(ec, std::error_code());
    EXPECT_TRUE(stdfs::is_directory(dir / "d/x/y"));
    EXPECT_TRUE(stdfs::is_directory(dir / "new"));
    EXPECT_TRUE(coil::run(fs::create_directories(dir / "second/.././link/x/../z", ec)));
    EXPECT_EQ(ec, std::error_code());
    EXPECT_TRUE(stdfs::is_directory(dir / "d/z"));
}

std::string appearing; // for the function below

void let_appear(const char* name) {
    if (name == std::string_view("link")) {
        put(appearing, "");
        fs_test::before_open_path = nullptr;
    }
}

/// The file that appears is empty, as if open(2) had created it, but newer than the original.
TEST(FsKeptRights, AFileThatAppearsBehindADanglingLinkIsAnExistingOne) {
    const scratch dir;
    put(dir / "from", "old");
    appearing = dir / "behind";
    stdfs::create_symlink("behind", dir / "link");
    stdfs::last_write_time(dir / "from",
                           stdfs::file_time_type::clock::now() - std::chrono::hours(1));
    const auto newer_only = fs::copy_options::update_existing;
    fs_test::before_open_path = let_appear;
    EXPECT_FALSE(coil::run(fs::copy_file(dir / "from", dir / "link", newer_only)));
    EXPECT_EQ(fs_test::before_open_path.load(), nullptr); // it has appeared
    EXPECT_EQ(content_of(dir / "behind"), "");

    stdfs::remove(dir / "behind");
    fs_test::before_open_path = let_appear;
    coil::run(fs::copy(dir / "from", dir / "link", newer_only));
    EXPECT_EQ(fs_test::before_open_path.load(), nullptr); // it has appeared
    EXPECT_EQ(content_of(dir / "behind"), "");

    stdfs::remove(dir / "behind");
    EXPECT_TRUE(coil::run(fs::copy_file(dir / "from", dir / "link", newer_only)));
    EXPECT_EQ(content_of(dir / "behind"), "old");
}

} // namespace
