#include "files.hpp"
#include "libc_calls.hpp"
#include "other_users.hpp"
#include "support/descriptors.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Entries that other users have put into the target of copy_tree().

namespace {

/// Called by the next symlinkat(2) of this process after the link was created, with its path.
std::function<void(int, const char*)> after_symlink;

} // namespace

extern "C" int symlinkat(const char* text, int directory, const char* name) noexcept {
    const long made = ::syscall(SYS_symlinkat, text, directory, name);
    if (const auto f = std::exchange(after_symlink, nullptr); made == 0 && f) {
        f(directory, name);
    }
    return static_cast<int>(made);
}

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::content_of;
using coil_test::put;
using coil_test::scratch;
namespace stdfs = std::filesystem;

fs::copy_tree_options overwriting_with_owner() {
    fs::copy_tree_options options;
    options.options |= fs::copy_options::overwrite_existing;
    options.owner = true;
    return options;
}

TEST(FsHostileTargets, ASingleFileFollowsNoLinkInTheTargetDirectory) {
    const scratch dir;
    put(dir / "motd", "new");
    put(dir / "victim", "untouched");
    const fs::copy_tree_options options = overwriting_with_owner();
    for (const char* const to : {"drop", "drop/"}) {
        for (const char* const text : {"../victim", "../none"}) {
            stdfs::create_directory(dir / "drop");
            stdfs::create_symlink(text, dir / "drop/motd");
            std::error_code ec;
            coil::run(fs::copy_tree(dir / "motd", dir.path().native() + '/' + to, options, ec));
            EXPECT_TRUE(ec) << to << ' ' << text;
            EXPECT_EQ(content_of(dir / "victim"), "untouched");
            EXPECT_FALSE(stdfs::exists(dir / "none"));

            coil::run(fs::copy(dir / "motd", dir / "drop", options.options));
            EXPECT_EQ(content_of(dir / "drop/motd"), "new"); // as std::filesystem follows it
            put(dir / "victim", "untouched");
            stdfs::remove(dir / "none");
            stdfs::remove_all(dir / "drop");
        }
    }
}

TEST(FsHostileTargets, OtherNamesOfAnOverwrittenFileKeepTheirContent) {
    const scratch dir;
    stdfs::create_directories(dir / "from/sub");
    put(dir / "from/sub/f", "new");
    ASSERT_EQ(::chmod((dir / "from/sub/f").c_str(), 0644), 0);
    put(dir / "victim", "untouched");
    ASSERT_EQ(::chmod((dir / "victim").c_str(), 0660), 0);
    const fs::copy_tree_options options = overwriting_with_owner();
    stdfs::create_directories(dir / "to/sub");
    const auto plant = [&](const fs::path& p) {
        stdfs::remove(p);
        stdfs::create_hard_link(dir / "victim", p);
    };
    const auto expect_untouched = [&] {
        EXPECT_EQ(content_of(dir / "victim"), "untouched");
        EXPECT_EQ(mode_of(dir / "victim"), 0660U);
        EXPECT_EQ(content_of(dir / "to/sub/f"), "new");
        EXPECT_EQ(mode_of(dir / "to/sub/f"), 0644U);
    };
    plant(dir / "to/sub/f");
    coil::run(fs::copy_tree(dir / "from", dir / "to", options));
    expect_untouched();
    plant(dir / "to/sub/f");
    coil::run(fs::copy_tree(dir / "from/sub/f", dir / "to/sub", options));
    expect_untouched();
    // If the caller names the target file itself, that file is written, as with copy().
    plant(dir / "to/sub/f");
    coil::run(fs::copy_tree(dir / "from/sub/f", dir / "to/sub/f", options));
    EXPECT_EQ(content_of(dir / "victim"), "new");
}

/// Another user replaces the new link with one of its own, before the copy sets the owner.
TEST(FsHostileTargets, AnotherLinkWithTheNameOfACopyKeepsItsOwner) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can change the owner of a link";
    }
    const scratch dir;
    stdfs::create_directory(dir / "from");
    stdfs::create_symlink("text", dir / "from/l");
    ASSERT_TRUE(set_owner(dir / "from/l", stranger));
    using attack = void (*)(int, const char*, const fs::path&);
    const attack attacks[] = {
        [](int at, const char* name, const fs::path&) { // with another target
            ::unlinkat(at, name, 0);
            ::syscall(SYS_symlinkat, "other", at, name);
        },
        [](int at, const char* name, const fs::path& victim) { // a hard link to one elsewhere
            ::unlinkat(at, name, 0);
            ::linkat(AT_FDCWD, victim.c_str(), at, name, 0);
        },
        [](int at, const char* name, const fs::path& victim) { // a link of another user
            ::unlinkat(at, name, 0);
            set_owner(victim, 4321);
            ::renameat(AT_FDCWD, victim.c_str(), at, name);
        },
    };
    for (const attack& a : attacks) {
        stdfs::create_symlink("text", dir / "victim");
        after_symlink = [&](int at, const char* name) { a(at, name, dir / "victim"); };
        std::error_code ec;
        coil::run(fs::copy_tree(dir / "from", dir / "to", overwriting_with_owner(), ec));
        EXPECT_EQ(after_symlink, nullptr) << "no link was created";
        EXPECT_NE(status_of(dir / "to/l").st_uid, stranger);
        stdfs::remove_all(dir / "to");
        stdfs::remove(dir / "victim");
    }
    coil::run(fs::copy_tree(dir / "from", dir / "to", overwriting_with_owner()));
    EXPECT_EQ(status_of(dir / "to/l").st_uid, stranger);
}

/// The file is exchanged for a link after its type was read.
TEST(FsHostileTargets, PermissionsWithNofollowDoNotReachBehindALinkThatHasJustAppeared) {
    static int top = -1;
    for (const fs::perm_options how :
         {fs::perm_options::replace, fs::perm_options::add, fs::perm_options::remove}) {
        const scratch dir;
        const coil_test::descriptor opened(::open(dir.path().c_str(), O_PATH | O_CLOEXEC));
        top = opened;
        for (const char* const name : {"outside", "file"}) {
            put(dir / name, "");
            ::chmod((dir / name).c_str(), 0640);
        }
        stdfs::create_symlink("outside", dir / "link");
        before_fchmodat = [] {
            EXPECT_EQ(::renameat2(top, "file", top, "link", RENAME_EXCHANGE), 0);
        };
        std::error_code ec;
        coil::run(
            fs::permissions(dir / "file", fs::perms(0055), how | fs::perm_options::nofollow, ec));
        EXPECT_EQ(before_fchmodat.load(), nullptr) << "no mode was changed";
        EXPECT_EQ(ec, std::errc::operation_not_supported);
        EXPECT_EQ(status_of(dir / "outside").st_mode & 07777U, 0640U);
        EXPECT_EQ(status_of(dir / "link").st_mode & 07777U, 0640U);
    }
}

} // namespace
