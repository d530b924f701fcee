#include "support/file_protections.hpp"
#include "swapper.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

// Functions that write to an attacked tree or follow links, and names that appear during a call:
// see swapper.hpp.

namespace {

using namespace coil;
using namespace fs_test;

class FsSwapperOfTargets : public FsSwapper {};
INSTANTIATE_TEST_SUITE_P(, FsSwapperOfTargets, testing::ValuesIn(attacks),
                         testing::PrintToStringParamName());

/// Kinds without links, for functions that follow links by design.
std::vector<std::string> kinds_inside() {
    std::vector<std::string> all = {"directory", "regular", "fifo", "socket", "recreated"};
    if (::geteuid() == 0) {
        all.emplace_back("device");
    }
    return all;
}

void make_source(const stdfs::path& top) {
    stdfs::path deep = top / "x/in";
    stdfs::create_directories(deep);
    for (const char* const name : {"file", "x/file", "x/in/file", "x/in/x"}) {
        coil_test::put(top / name, "new");
    }
    for (int i = 0; i < 10; ++i) {
        deep /= "d";
        stdfs::create_directory(deep);
        coil_test::put(deep / "f", "new");
    }
}

TEST_P(FsSwapperOfTargets, CopyIntoATree) {
    attacked([&] {
        arena a(GetParam(), kinds_inside());
        make_source(a / "from");
        const auto options = fs::copy_options::recursive | fs::copy_options::overwrite_existing;
        while_swapped(a, arena::names(), [&](io_context& context) {
            a.create_entries();
            std::error_code ec;
            coil_test::run_on(context, fs::copy(a / "from", a / "tree", options, ec));
            expect_no_device_opened(a, ec);
        });
    });
}

TEST_P(FsSwapperOfTargets, CopyThatFollowsLinks) {
    attacked([&] {
        std::vector<std::string> kinds = kinds_inside();
        kinds.emplace_back("link_inside");
        arena a(GetParam(), kinds);
        while_swapped(a, arena::names(), [&](io_context& context) {
            std::error_code ec;
            coil_test::run_on(context,
                              fs::copy(a / "tree", a / "copy", fs::copy_options::recursive, ec));
            expect_no_device_opened(a, ec);
            arena::expect_no_secret_in(a / "copy");
            stdfs::remove_all(a / "copy");
        });
    });
}

task<> read_whole(fs::path p, std::set<std::string>& seen, std::error_code& ec) {
    auto entries = fs::read_directory(std::move(p), ec);
    while (auto entry = co_await entries.next()) {
        seen.insert(entry->path().filename());
    }
}

/// The directory itself is named by the caller, so only its entries are exchanged.
TEST_P(FsSwapperOfTargets, ReadDirectory) {
    attacked([&] {
        arena a(GetParam());
        while_swapped(a, {"x/in", "x/file"}, [&](io_context& context) {
            std::set<std::string> seen;
            std::error_code ec;
            coil_test::run_on(context, read_whole(a / "tree/x", seen, ec));
            ASSERT_FALSE(seen.contains("only"));
            ASSERT_TRUE(!ec || ec == std::errc::no_such_file_or_directory) << ec;
        });
    });
}

/// The existing part of the path may have links by design, so none are exchanged here. Nothing is
/// created in directories that are not the tree's own.
TEST_P(FsSwapperOfTargets, CreateDirectories) {
    attacked([&] {
        arena a(GetParam(), kinds_inside());
        while_swapped(a, arena::names(), [&](io_context& context) {
            std::error_code ec;
            coil_test::run_on(context, fs::create_directories(a / "tree/x/in/d/new/a/b", ec));
            coil_test::run_on(context, fs::remove_all(a / "tree/x/in/d/new", ec));
            a.create_entries();
        });
    });
}

/// All of these follow links by design, so the attacker uses none, and no FIFO, for which open(2)
/// would wait.
TEST_P(FsSwapperOfTargets, WriteFileInPlaceAtItsEndAndAtomically) {
    attacked([&] {
        arena a(GetParam(), {"directory", "regular"});
        while_swapped(a, {"file"}, [&](io_context& context) {
            std::error_code ec;
            const stdfs::path p = a / "tree/file";
            coil_test::run_on(context, fs::write_file(p, "in place", ec));
            coil_test::run_on(context, fs::write_file(p, "more", fs::write_mode::append, ec));
            coil_test::run_on(context, fs::write_file(p, "new", fs::atomic_replace, ec));
        });
    });
}

TEST_P(FsSwapperOfTargets, AtomicReplaceBesideFifosAndLinksInTheTree) {
    attacked([&] {
        arena a(GetParam(), {"link_inside", "directory", "regular", "fifo"});
        while_swapped(a, {"file"}, [&](io_context& context) {
            std::error_code ec;
            coil_test::run_on(context,
                              fs::write_file(a / "tree/file", "new", fs::atomic_replace, ec));
        });
        for (const auto& entry : stdfs::recursive_directory_iterator(a / "tree")) {
            EXPECT_FALSE(entry.path().filename().string().starts_with(".coil-")) << entry.path();
        }
    });
}

/// Permissions of a link's target remain as they are, even if the link appears during the call.
TEST_P(FsSwapperOfTargets, PermissionsWithoutFollowing) {
    attacked([&] {
        arena a(GetParam(), arena::kinds_of_targets());
        while_swapped(a, {"file"}, [&](io_context& context) {
            for (const fs::perm_options how :
                 {fs::perm_options::replace, fs::perm_options::add, fs::perm_options::remove}) {
                std::error_code ec;
                const auto bits = how == fs::perm_options::replace ? fs::perms(0755) : fs::perms(7);
                coil_test::run_on(context, fs::permissions(a / "tree/file", bits,
                                                           how | fs::perm_options::nofollow, ec));
            }
        });
    });
}

/// In a sticky directory the kernel does not follow other users' links, so they lead outside here.
TEST(FsSwapperInAStickyDirectory, WriteFileInPlaceAtItsEndAndAtomically) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can run a process of another user";
    }
    const coil_test::file_protections on('1');
    if (!on.refusal().empty()) {
        GTEST_SKIP() << on.refusal();
    }
    arena a(attacks[2], {"link_to_file", "regular"});
    ASSERT_TRUE(a.kind().in_sticky);
    const swapper attacker(a, {"tree/file"}, a.names_aside());
    const std::uint64_t before = attacker.exchanges();
    const clock_type::time_point end = clock_type::now() + duration();
    io_context context;
    std::set<int> errors;
    std::uint64_t rounds = 0;
    for (; clock_type::now() < end && !HasFatalFailure(); ++rounds) {
        for (const fs::write_options& options :
             {fs::write_options(), fs::write_options{.mode = fs::write_mode::append},
              fs::atomic_replace}) {
            std::error_code ec;
            coil_test::run_on(context, fs::write_file(a / "tree/file", "new", options, ec));
            errors.insert(ec.value());
        }
        a.expect_outside_untouched();
        a.create_entries();
    }
    EXPECT_TRUE(errors.contains(EACCES)); // links have been met
    report(rounds, attacker.exchanges() - before);
}

/// If the target does not exist, a link created meanwhile is not followed.
TEST(FsSwapperOfNewNames, CopyFile) {
    arena a(attacks[0]);
    coil_test::put(a / "source", "new");
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> planted{0};
    std::thread attacker([&] {
        while (!over.load()) {
            planted += ::symlink((a / "outside/file").c_str(), (a / "new").c_str()) == 0 ? 1 : 0;
            ::unlink((a / "new").c_str());
        }
    });
    const clock_type::time_point end = clock_type::now() + duration();
    io_context context;
    std::uint64_t rounds = 0;
    for (; clock_type::now() < end && !::testing::Test::HasFatalFailure(); ++rounds) {
        std::error_code ec;
        coil_test::run_on(context, fs::copy_file(a / "source", a / "new", ec));
        a.expect_outside_untouched();
        ::unlink((a / "new").c_str());
    }
    over = true;
    attacker.join();
    report(rounds, planted.load());
}

} // namespace
