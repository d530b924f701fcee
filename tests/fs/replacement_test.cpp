#include "access_list.hpp"
#include "files.hpp"
#include "other_users.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/mount.h>
#include <sys/stat.h>

// Attributes of a file that atomic_replace replaces, and refusals in directories of other users.

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::content_of;
using coil_test::put;
using coil_test::scratch;
namespace stdfs = std::filesystem;

TEST(FsReplacement, KeepsTheAccessList) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    const access_list list{
        {of_owner, 6}, {of_user, 4, stranger}, {of_group, 0}, {of_mask, 4}, {of_others, 0}};
    put(dir / "f", "old");
    if (!set_access_list(dir / "f", list)) {
        GTEST_SKIP() << "the file system has no access control lists";
    }
    const std::string kept = access_list_of(dir / "f");
    coil::run(fs::write_file(dir / "f", "new", fs::atomic_replace));
    EXPECT_EQ(access_list_of(dir / "f"), kept);
    EXPECT_EQ(mode_of(dir / "f"), 0640U);

    const std::string complaint = coil_test::in_child([&]() -> std::string {
        if (std::string refusal = have_private_mounts(); !refusal.empty()) {
            return refusal;
        }
        stdfs::create_directory(dir / "empty");
        if (::mount((dir / "empty").c_str(), "/proc", nullptr, MS_BIND, nullptr) != 0) {
            return "SKIP: this process may not mount";
        }
        coil::run(fs::write_file(dir / "f", "newer", fs::atomic_replace));
        return access_list_of(dir / "f") == kept ? "" : "without /proc the list is lost";
    });
    if (complaint.starts_with("SKIP: ")) {
        GTEST_SKIP() << complaint.substr(6);
    }
    EXPECT_EQ(complaint, "");
    EXPECT_EQ(content_of(dir / "f"), "newer");
}

TEST(FsReplacement, KeepsSetIdBitsOfAnOrdinaryUser) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    EXPECT_EQ(as_stranger(dir.path(),
                          [&]() -> std::string {
                              put(dir / "f", "old");
                              ::chmod((dir / "f").c_str(), 06751);
                              coil::run(fs::write_file(dir / "f", "new", fs::atomic_replace));
                              return "";
                          }),
              "");
    EXPECT_EQ(mode_of(dir / "f"), 06751U);
    EXPECT_EQ(content_of(dir / "f"), "new");
}

TEST(FsReplacement, RefusesFilesOfOtherUsersIfTheSettingsAreUnknown) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        stdfs::create_directory(dir / "empty");
        stdfs::create_directory(dir / "tmp");
        ::chmod((dir / "tmp").c_str(), 01777);
        stdfs::create_symlink(dir / "missing", dir / "tmp/dangling");
        put(dir / "tmp/file", "old");
        put(dir / "tmp/own", "old");
        if (!set_owner(dir / "tmp/dangling", stranger) || !set_owner(dir / "tmp/file", stranger)) {
            return "SKIP: only root can change the owner of a file";
        }
        if (std::string refusal = have_private_mounts(); !refusal.empty()) {
            return refusal;
        }
        std::string wrong;
        for (const char* const hidden : {"/proc/sys/fs", "/proc"}) {
            if (::mount((dir / "empty").c_str(), hidden, nullptr, MS_BIND, nullptr) != 0) {
                return "SKIP: this process may not mount";
            }
            for (const char* const name : {"dangling", "file", "own"}) {
                std::error_code ec;
                coil::run(fs::write_file(dir / "tmp" / name, "attack", fs::atomic_replace, ec));
                if (ec != (std::string_view(name) == "own" ? std::errc()
                                                           : std::errc::permission_denied)) {
                    wrong += std::string(name) + " without " + hidden + ": " + ec.message() + "; ";
                }
            }
        }
        return wrong;
    });
    if (complaint.starts_with("SKIP: ")) {
        GTEST_SKIP() << complaint.substr(6);
    }
    EXPECT_EQ(complaint, "");
    EXPECT_FALSE(stdfs::exists(dir / "missing"));
}

} // namespace
