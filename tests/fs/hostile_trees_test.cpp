#include "files.hpp"
#include "needs_fork.hpp"
#include "other_users.hpp"
#include "support/descriptors.hpp"
#include "support/file_protections.hpp"
#include "trees.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// Files that another user has created in a directory do not redirect the work. For changes during
// the work see swapper_test.cpp.

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::content_of;
using coil_test::scratch;

std::error_code error_of_write(const fs::path& p, fs::write_options options) {
    std::error_code ec;
    coil::run(fs::write_file(p, "attack", options, ec));
    return ec;
}

/// A directory with the permissions of /tmp.
void make_sticky(const fs::path& p) {
    stdfs::create_directory(p);
    ASSERT_EQ(::chmod(p.c_str(), 01777), 0);
}

TEST(FsHostileTrees, AtomicReplaceFollowsNoLinkThatTheKernelDoesNot) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can change the owner of a link";
    }
    const coil_test::file_protections on('1');
    if (!on.refusal().empty()) {
        GTEST_SKIP() << on.refusal();
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
    EXPECT_EQ(content_of(dir / "victim"), "attack"); // links of the same owner are followed
}

/// Makes a setting of proc_sys_fs(5) appear as 1 to this process. Returns the reason if it cannot.
std::string pretend(const fs::path& dir, const char* setting) {
    coil_test::put(dir / "one", "1\n");
    if (std::string refusal = have_private_mounts(); !refusal.empty()) {
        return refusal;
    }
    if (::mount((dir / "one").c_str(), (std::string("/proc/sys/fs/") + setting).c_str(), nullptr,
                MS_BIND, nullptr) != 0) {
        return std::string("SKIP: this process may not mount: ") + std::strerror(errno);
    }
    return "";
}

/// The checks matter for files that the kernel cannot open, and for settings that open(2) for
/// reading ignores.
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
            return "SKIP: only root can change the owner of a file";
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

TEST(FsHostileTrees, AtomicReplaceRefusesTheFilesThatTheKernelRefuses) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can change the owner of a file";
    }
    const scratch dir;
    make_sticky(dir / "tmp");
    for (const char setting : {'0', '1', '2'}) {
        const coil_test::file_protections protections(setting);
        if (!protections.refusal().empty()) {
            GTEST_SKIP() << protections.refusal();
        }
        for (const ::mode_t mode : {01777U, 01770U, 0777U}) {
            ASSERT_EQ(::chmod((dir / "tmp").c_str(), mode), 0);
            coil_test::put(dir / "tmp" / "f", "old");
            ASSERT_TRUE(set_owner(dir / "tmp" / "f", stranger));
            const std::error_code replaced = error_of_write(dir / "tmp" / "f", fs::atomic_replace);
            EXPECT_EQ(content_of(dir / "tmp" / "f"), replaced ? "old" : "attack");
            EXPECT_EQ(replaced, error_of_write(dir / "tmp" / "f", {})) << setting << mode;
            // The setting 2 protects files in group-writable directories, too.
            EXPECT_EQ(replaced == std::errc::permission_denied,
                      (setting >= '1' && mode == 01777U) || (setting == '2' && mode == 01770U))
                << setting << mode;
            stdfs::remove(dir / "tmp" / "f");
        }
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

fs::copy_tree_options keeping_owner() {
    fs::copy_tree_options options;
    options.owner = true;
    options.times = true;
    return options;
}

TEST(FsHostileTrees, ACopyCarriesNoRightsOfItsNewOwner) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can change the owner of a file";
    }
    const scratch dir;
    stdfs::create_directory(dir / "from");
    coil_test::put(dir / "from" / "theirs", "theirs");
    coil_test::put(dir / "from" / "own", "own");
    coil_test::put(dir / "from" / "large", std::string(3'000'000, 'x'));
    for (const char* const name : {"theirs", "large"}) {
        ASSERT_TRUE(set_owner(dir / "from" / name, stranger));
        ASSERT_EQ(::chmod((dir / "from" / name).c_str(), 06755), 0);
    }
    ASSERT_EQ(::chmod((dir / "from" / "own").c_str(), 06755), 0);

    coil::run(fs::copy_tree(dir / "from", dir / "tree"));
    coil::run(fs::copy(dir / "from", dir / "copy", fs::copy_options::recursive));
    stdfs::create_directory(dir / "files");
    for (const char* const name : {"theirs", "large", "own"}) {
        coil::run(fs::copy_file(dir / "from" / name, dir / "files" / name));
        EXPECT_EQ(status_of(dir / "tree" / name).st_mode & 07777U, 0755U) << name;
    }
    for (const char* const into : {"copy", "files"}) {
        for (const char* const name : {"theirs", "large"}) {
            EXPECT_EQ(status_of(dir / into / name).st_mode & 07777U, 0755U) << into << name;
        }
        // As std::filesystem keeps it.
        EXPECT_EQ(status_of(dir / into / "own").st_mode & 07777U, 06755U);
    }
    coil::run(fs::copy_tree(dir / "from", dir / "kept", keeping_owner()));
    for (const char* const name : {"theirs", "large", "own"}) {
        const struct ::stat kept = status_of(dir / "kept" / name);
        EXPECT_EQ(kept.st_mode & 07777U, 06755U) << name;
        EXPECT_EQ(kept.st_uid, std::string(name) == "own" ? 0 : stranger) << name;
    }
}

TEST(FsHostileTrees, AnOrdinaryUserKeepsItsOwnSetUserIdBits) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        if (::geteuid() == 0 && (::chown(dir.path().c_str(), stranger, stranger) != 0 ||
                                 ::setresgid(stranger, stranger, stranger) != 0 ||
                                 ::setresuid(stranger, stranger, stranger) != 0)) {
            return "cannot change its user";
        }
        stdfs::create_directory(dir / "from");
        coil_test::put(dir / "from" / "f", std::string(3'000'000, 'x'));
        ::chmod((dir / "from" / "f").c_str(), 04751);
        coil::run(fs::copy_tree(dir / "from", dir / "kept", keeping_owner()));
        coil::run(fs::copy_tree(dir / "from", dir / "plain"));
        const auto mode = [&](const fs::path& p) { return status_of(dir / p.native()).st_mode; };
        return (mode("kept/f") & 07777U) == 04751U && (mode("plain/f") & 07777U) == 0751U
                   ? ""
                   : "the modes differ";
    });
    EXPECT_EQ(complaint, "");
}

TEST(FsHostileTrees, CopyTreeFollowsNoLinkInItsTarget) {
    const scratch dir;
    stdfs::create_directories(dir / "from" / "sub");
    coil_test::put(dir / "from" / "sub" / "file", "new");
    coil_test::put(dir / "from" / "top", "new");
    stdfs::create_directory(dir / "outside");
    coil_test::put(dir / "outside" / "top", "untouched");
    for (const char* const name : {"sub", "top"}) {
        const fs::path to = dir / (std::string("to") + name);
        stdfs::create_directory(to);
        stdfs::create_symlink(dir / "outside" / (std::string(name) == "top" ? "top" : ""),
                              to / name);
        fs::copy_tree_options options;
        options.options |= fs::copy_options::overwrite_existing;
        std::error_code ec;
        coil::run(fs::copy_tree(dir / "from", to, options, ec));
        EXPECT_TRUE(ec) << name;
    }
    EXPECT_EQ(content_of(dir / "outside" / "top"), "untouched");
    EXPECT_FALSE(stdfs::exists(dir / "outside" / "file"));
}

TEST(FsHostileTrees, ARefusedCopyIntoItselfLeavesNothing) {
    const scratch dir;
    stdfs::create_directories(dir / "a" / "b");
    coil_test::put(dir / "a" / "file", "x");
    stdfs::create_directory_symlink("a/b", dir / "link");
    for (const char* const to : {"a/sub", "a/b/sub", "a/b", "link", "link/sub", "a/b/../sub"}) {
        std::error_code ec;
        coil::run(fs::copy_tree(dir / "a", dir / to, ec));
        EXPECT_EQ(ec, std::errc::invalid_argument) << to;
    }
    EXPECT_EQ(std::distance(stdfs::directory_iterator(dir / "a"), {}), 2);
    EXPECT_TRUE(stdfs::is_empty(dir / "a" / "b"));
}

/// Runs `f` in a process that can open only `spare` more descriptors.
template <class F>
std::string with_spare_descriptors(int spare, F f) {
    return coil_test::in_child([&]() -> std::string {
        const std::set<int> open = coil_test::open_descriptors();
        ::rlim_t limit = 0;
        for (int left = spare; left > 0; ++limit) {
            left -= open.contains(static_cast<int>(limit)) ? 0 : 1;
        }
        const ::rlimit few{limit, limit};
        ::setrlimit(RLIMIT_NOFILE, &few);
        try {
            f();
        } catch (const std::exception& e) {
            return e.what();
        }
        return "";
    });
}

task<> walk_through(fs::path p) {
    auto tree = fs::walk(std::move(p));
    while (auto entry = co_await tree.next()) {
    }
}

TEST(FsHostileTrees, G6_TreesAreProcessedWithTenDescriptors) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    random_tree(dir / "from", 3, 60, 300);
    coil_test::put(dir / "from" / "large", std::string(20'000'000, 'x'));
    const auto entries = [](const fs::path& p) {
        return std::distance(stdfs::recursive_directory_iterator(p), {});
    };
    for (int round = 0; round < coil_test::rounds(4, 40); ++round) {
        EXPECT_EQ(
            with_spare_descriptors(10, [&] { coil::run(fs::copy_tree(dir / "from", dir / "to")); }),
            "");
        EXPECT_EQ(entries(dir / "to"), entries(dir / "from"));
        EXPECT_EQ(with_spare_descriptors(10, [&] { coil::run(walk_through(dir / "to")); }), "");
        EXPECT_EQ(with_spare_descriptors(10, [&] { coil::run(fs::remove_all(dir / "to")); }), "");
        EXPECT_FALSE(stdfs::exists(dir / "to"));
    }
}

} // namespace
