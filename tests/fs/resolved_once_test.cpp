#include "files.hpp"
#include "libc_calls.hpp"
#include "needs_fork.hpp"
#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// A path is resolved once: a directory that a function has found is not confused with another one
// that takes its place, or even its inode number.

namespace {

using namespace coil;
using coil_test::scratch;
namespace stdfs = std::filesystem;

task<fs::directory_entry> first_entry(fs::path p) {
    auto entries = fs::read_directory(std::move(p));
    auto entry = co_await entries.next();
    co_return std::move(entry).value();
}

std::error_code error_of_size(const fs::directory_entry& entry) {
    std::error_code ec;
    coil::run([](fs::directory_entry e, std::error_code& error) -> task<> {
        co_await e.file_size(error);
    }(entry, ec));
    return ec;
}

::ino_t inode_of(const stdfs::path& p) {
    struct ::stat status{};
    EXPECT_EQ(::lstat(p.c_str(), &status), 0) << p;
    return status.st_ino;
}

/// An entry that outlives its walk opens the directory again.
TEST(FsResolvedOnce, AnEntryIsNotLookedUpInAnotherDirectoryOfTheSameName) {
    const scratch dir;
    for (const char* const name : {"d", "other"}) {
        stdfs::create_directory(dir / name);
        coil_test::put(dir / name / "file", name);
    }
    const fs::directory_entry entry = coil::run(first_entry(dir / "d"));
    stdfs::rename(dir / "d", dir / "moved");
    stdfs::rename(dir / "other", dir / "d");
    EXPECT_EQ(error_of_size(entry), std::errc::no_such_file_or_directory);
    stdfs::rename(dir / "d", dir / "other");
    stdfs::rename(dir / "moved", dir / "d");
    EXPECT_FALSE(error_of_size(entry));
}

TEST(FsResolvedOnce, AnEntryIsNotLookedUpInADirectoryThatHasGotTheInodeOfItsOwn) {
    const scratch dir;
    const stdfs::path d = dir / "d";
    stdfs::create_directory(d);
    coil_test::put(d / "file", "x");
    const fs::directory_entry entry = coil::run(first_entry(d));
    const ::ino_t inode = inode_of(d);
    stdfs::remove_all(d);
    ::usleep(20'000); // timestamps may have the resolution of a kernel tick
    bool recurs = false;
    for (int tries = 0; tries < 10'000 && !recurs; ++tries) {
        stdfs::create_directory(d);
        recurs = inode_of(d) == inode;
        if (!recurs) {
            stdfs::remove(d);
        }
    }
    if (!recurs) {
        GTEST_SKIP() << "the file system does not reuse the numbers of inodes";
    }
    struct ::statx found{};
    if (::statx(AT_FDCWD, d.c_str(), 0, STATX_BTIME, &found) != 0 ||
        (found.stx_mask & STATX_BTIME) == 0) {
        GTEST_SKIP() << "the file system does not record when a file was created";
    }
    coil_test::put(d / "file", "of another directory");
    EXPECT_EQ(error_of_size(entry), std::errc::no_such_file_or_directory);
}

/// Runs `f` in a process that can open `spare` descriptors besides those of a context and its pool.
std::string with_spare_descriptors(int spare, const std::function<task<>()>& f) {
    return coil_test::in_child([&]() -> std::string {
        io_context context;
        static_cast<void>(coil_test::run_on(
            context, [](int) -> task<int> { co_return co_await blocking([] { return 0; }); }(0)));
        const std::set<int> open = coil_test::open_descriptors();
        ::rlim_t limit = 0;
        for (int left = spare; left > 0 || open.contains(static_cast<int>(limit)); ++limit) {
            left -= open.contains(static_cast<int>(limit)) ? 0 : 1;
        }
        const ::rlimit few{limit, limit};
        ::setrlimit(RLIMIT_NOFILE, &few);
        coil_test::run_on(context, f());
        return "";
    });
}

/// Copying a link takes no descriptor, so that only the parents of both paths can fail to open.
TEST(FsResolvedOnce, WithoutDescriptorsTheWholePathIsNotUsedInstead) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    stdfs::create_symlink("nowhere", dir / "link");
    for (int spare = 0; spare < 2; ++spare) {
        std::string complaint = with_spare_descriptors(spare, [&]() -> task<> {
            std::error_code ec;
            co_await fs::copy_tree(dir / "link", dir / "copy", ec);
            if (ec != std::errc::too_many_files_open) {
                throw std::runtime_error("copy_tree gives: " + ec.message());
            }
            co_await fs::copy_file(dir / "link", dir / "copy", ec);
            if (ec != std::errc::too_many_files_open) {
                throw std::runtime_error("copy_file gives: " + ec.message());
            }
        });
        EXPECT_EQ(complaint, "") << spare;
        EXPECT_FALSE(stdfs::is_symlink(dir / "copy"));
    }
}

TEST(FsResolvedOnce, ErrorsOfMissingPathsAreThoseOfTheStandard) {
    const scratch dir;
    coil_test::put(dir / "file", "x");
    stdfs::create_directory(dir / "d");
    stdfs::create_symlink("nowhere", dir / "link");
    ::mkfifo((dir / "fifo").c_str(), 0600);
    const auto links = fs::copy_options::copy_symlinks;
    for (const char* const from : {"file", "d", "link", "fifo", "none", "none/x", "file/x"}) {
        for (const char* const to : {"none/x", "file/x", "none/x/y", "none/", ""}) {
            const stdfs::path target = *to == '\0' ? stdfs::path() : dir / to;
            std::error_code ours;
            std::error_code expected;
            coil::run(fs::copy(dir / from, target, links, ours));
            stdfs::copy(dir / from, target, links, expected);
            EXPECT_EQ(ours, expected) << from << " to " << to;
            coil::run(fs::copy_file(dir / from, target, fs::copy_options::none, {}, ours));
            stdfs::copy_file(dir / from, target, expected);
            EXPECT_EQ(ours, expected) << from << " to " << to << " by copy_file";
        }
    }
}

std::string outside; // for the function below

/// Plants a link where create_directories() has found nothing.
void plant_link(int directory, const char* name) {
    if (name == std::string_view("new")) {
        static_cast<void>(::symlinkat(outside.c_str(), directory, name) == 0);
    }
}

/// Uses the epoll backend, because it calls the mkdirat() of this program.
TEST(FsResolvedOnce, CreateDirectoriesFollowsNoLinkThatAppears) {
    COIL_SKIP_UNDER_FAULTS(
        "every context is on io_uring, whose mkdirat is no call of this program");
    const scratch dir;
    outside = dir / "outside";
    stdfs::create_directory(outside);
    stdfs::create_directory(dir / "tree");
    io_context context(
        coil_test::with([](io_context_options& o) { o.backend = io_backend::epoll; }));
    fs_test::before_mkdirat = plant_link;
    std::error_code ec;
    coil_test::run_on(context, fs::create_directories(dir / "tree/new/a/b", ec));
    fs_test::before_mkdirat = nullptr;
    EXPECT_TRUE(stdfs::is_symlink(dir / "tree/new")); // the link was planted
    EXPECT_EQ(ec, std::errc::not_a_directory);
    EXPECT_TRUE(stdfs::is_empty(outside));
}

} // namespace
