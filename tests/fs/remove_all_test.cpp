#include "support/run.hpp"
#include "trees.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <stdio.h> // renameat2
#include <sys/resource.h>

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::in_child;

task<std::uintmax_t> remove_with_error(fs::path p, std::error_code& ec) {
    co_return co_await fs::remove_all(p, ec);
}

TEST(FsRemoveAll, CountsAsTheStandardDoes) {
    const temporary_directory tmp;
    for (unsigned seed = 1; seed < 6; ++seed) {
        random_tree(tmp / "ours", seed);
        random_tree(tmp / "theirs", seed);
        const std::uintmax_t theirs = stdfs::remove_all(tmp / "theirs");
        EXPECT_EQ(coil::run(fs::remove_all(tmp / "ours")), theirs);
        EXPECT_FALSE(stdfs::exists(tmp / "ours"));
    }
}

TEST(FsRemoveAll, TreatsNonDirectoriesAsTheStandardDoes) {
    const auto make = [](const stdfs::path& top) {
        stdfs::create_directories(top / "directory");
        make_file(top / "file");
        make_file(top / "directory/kept");
        stdfs::create_symlink("nowhere", top / "dangling");
        stdfs::create_directory_symlink("directory", top / "link");
        stdfs::create_symlink("loop", top / "loop");
    };
    const temporary_directory ours;
    const temporary_directory theirs;
    make(ours.path());
    make(theirs.path());
    for (const std::string name : {"file", "dangling", "link", "loop", "missing", "file/x",
                                   "missing/x", "loop/x", "link/", "directory/."}) {
        std::error_code mine;
        std::error_code standard;
        const std::uintmax_t m = coil::run(remove_with_error(ours / name, mine));
        const std::uintmax_t s = stdfs::remove_all(theirs / name, standard);
        EXPECT_EQ(m, s) << name;
        EXPECT_EQ(mine, standard) << name;
        EXPECT_TRUE(stdfs::exists(ours / "directory/kept")) << name;
    }
    std::error_code mine;
    std::error_code standard;
    EXPECT_EQ(coil::run(remove_with_error({}, mine)), stdfs::remove_all({}, standard));
    EXPECT_EQ(mine, standard);
}

TEST(FsRemoveAll, SaysWhatCouldNotBeDeleted) {
    FS_TEST_NEEDS_FORK();
    EXPECT_EQ(
        in_child([]() -> std::string {
            const temporary_directory tmp;
            stdfs::create_directories(tmp / "t/shut");
            make_file(tmp / "t/shut/file");
            stdfs::permissions(tmp / "t/shut", stdfs::perms::owner_read | stdfs::perms::owner_exec);
            stdfs::permissions(tmp / "t", stdfs::perms::all);
            stdfs::permissions(tmp.path(), stdfs::perms::all);
            const bool was_root = ::geteuid() == 0;
            if (was_root) {
                if (::chown((tmp / "t/shut").c_str(), 65534, 65534) != 0 || ::seteuid(65534) != 0) {
                    return "seteuid";
                }
            }
            std::string complaint;
            std::error_code standard;
            stdfs::remove_all(tmp / "t", standard);
            std::error_code ec;
            if (coil::run(remove_with_error(tmp / "t", ec)) != static_cast<std::uintmax_t>(-1)) {
                complaint += "a count; ";
            }
            if (ec != standard || !ec) {
                complaint += ec.message() + " and not " + standard.message();
            }
            try {
                coil::run(fs::remove_all(tmp / "t"));
                complaint += "nothing thrown; ";
            } catch (const fs::filesystem_error& e) {
                if (e.path1() != tmp / "t" || e.path2() != tmp / "t/shut/file") {
                    complaint += e.what();
                }
            }
            if (was_root && ::seteuid(0) != 0) {
                return "seteuid";
            }
            return complaint;
        }),
        "");
}

TEST(FsRemoveAll, RemovesWhileOthersRemoveAndAdd) {
    const temporary_directory tmp;
    for (int round = 0; round < coil_test::rounds(3, 30); ++round) {
        random_tree(tmp / "t", static_cast<unsigned>(round), 100, 1500);
        std::thread other([&] {
            std::error_code ec;
            stdfs::remove_all(tmp / "t", ec);
            for (int i = 0; i < 20; ++i) {
                make_file(tmp / "t" / ("d0/new" + std::to_string(i)));
            }
        });
        std::error_code ec;
        coil::run(remove_with_error(tmp / "t", ec));
        EXPECT_FALSE(ec) << ec.message();
        other.join();
        EXPECT_FALSE(stdfs::exists(tmp / "t"));
    }
}

// A directory is continuously exchanged with a link to another directory, whose content must
// remain.
TEST(FsRemoveAll, FollowsNoLinkThatReplacesADirectory) {
    const temporary_directory tmp;
    stdfs::create_directories(tmp / "victim/in");
    for (int i = 0; i < 20; ++i) {
        make_file(tmp / ("victim/" + std::to_string(i)));
        make_file(tmp / ("victim/in/" + std::to_string(i)));
    }
    for (int round = 0; round < coil_test::rounds(60, 500); ++round) {
        stdfs::create_directories(tmp / "t/a/b/c");
        for (int i = 0; i < 30; ++i) {
            make_file(tmp / ("t/a/b/" + std::to_string(i)));
        }
        stdfs::create_directory_symlink(tmp / "victim", tmp / "link");
        std::atomic<bool> over{false};
        std::thread attacker([&] {
            const std::string directory = tmp / "t/a";
            const std::string link = tmp / "link";
            while (!over.load(std::memory_order_relaxed)) {
                ::renameat2(AT_FDCWD, directory.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
            }
        });
        std::error_code ec;
        coil::run(remove_with_error(tmp / "t", ec));
        over = true;
        attacker.join();
        for (const stdfs::path& p : {tmp / "victim", tmp / "victim/in"}) {
            ASSERT_EQ(std::distance(stdfs::directory_iterator(p), {}),
                      p == tmp / "victim" ? 21 : 20);
        }
        stdfs::remove_all(tmp / "t");
        stdfs::remove_all(tmp / "link");
    }
}

task<> after_turns(int turns, std::function<void()> f) {
    for (int i = 0; i < turns; ++i) {
        co_await yield();
    }
    f();
}

TEST(G3_fs_remove_all, AStopEndsIt) {
    const temporary_directory tmp;
    int cancelled = 0;
    for (int turns = 0; turns < 30; ++turns) {
        random_tree(tmp / "t", 5, 30, 300);
        inplace_stop_source source;
        io_context ctx;
        std::error_code ec;
        auto removing =
            ctx.spawn(with_stop_token(fs::remove_all(tmp / "t", ec), source.get_token()));
        ctx.co_spawn(after_turns(turns, [&] { source.request_stop(); }));
        ctx.run();
        const std::uintmax_t count = removing.get();
        if (ec) {
            EXPECT_EQ(ec, std::errc::operation_canceled);
            ++cancelled;
        } else {
            EXPECT_GT(count, 0U);
            EXPECT_FALSE(stdfs::exists(tmp / "t"));
        }
        stdfs::remove_all(tmp / "t");
    }
    EXPECT_GT(cancelled, 0);
}

TEST(G5_fs_remove_all, MayBeDestroyedOrStoppedInTheMiddle) {
    const temporary_directory tmp;
    for (int turns = 0; turns < 24; ++turns) {
        random_tree(tmp / "t", 5, 30, 300);
        io_context ctx;
        ctx.co_spawn([](fs::path p) -> task<> {
            std::error_code ec;
            co_await fs::remove_all(p, ec);
        }(tmp / "t"));
        ctx.co_spawn(after_turns(turns, [&] { ctx.stop(); }));
        ctx.run();
        stdfs::remove_all(tmp / "t");
    }
}

} // namespace
