#include "support/descriptors.hpp"
#include "support/run.hpp"
#include "trees.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include <sys/resource.h>

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::in_child;

/// What a walk reports about an entry.
using walked = std::tuple<int, stdfs::file_type, stdfs::file_type, std::uintmax_t>;
using walked_tree = std::map<std::string, walked>;

task<walked_tree> walk_all(fs::path top, fs::walk_options options) {
    walked_tree all;
    auto tree = fs::walk(top, options);
    while (auto entry = co_await tree.next()) {
        std::error_code ec;
        const std::uintmax_t size = co_await entry->file_size(ec);
        const stdfs::file_status status = co_await entry->status(ec);
        const bool added =
            all.emplace(entry->path(), walked(entry->depth(), entry->type(), status.type(), size))
                .second;
        EXPECT_TRUE(added) << entry->path() << " came twice";
    }
    co_return all;
}

walked_tree walk_all_std(const stdfs::path& top, stdfs::directory_options options) {
    walked_tree all;
    for (stdfs::recursive_directory_iterator i(top, options), end; i != end; ++i) {
        std::error_code ec;
        const std::uintmax_t size = stdfs::file_size(i->path(), ec);
        all.emplace(i->path(),
                    walked(i.depth(), i->symlink_status().type(), i->status(ec).type(), size));
    }
    return all;
}

TEST(FsWalk, SeesWhatTheStandardSees) {
    const temporary_directory tmp;
    for (unsigned seed = 1; seed < 5; ++seed) {
        const stdfs::path top = tmp / std::to_string(seed);
        random_tree(top, seed, 60, 600);
        for (const bool with_metadata : {false, true}) {
            fs::walk_options options;
            options.with_metadata = with_metadata;
            EXPECT_EQ(coil::run(walk_all(top, options)),
                      walk_all_std(top, stdfs::directory_options::none));
        }
    }
}

TEST(FsWalk, ReadsOneDirectory) {
    const temporary_directory tmp;
    random_tree(tmp / "t", 3);
    std::set<std::string> theirs;
    for (const auto& e : stdfs::directory_iterator(tmp / "t")) {
        theirs.insert(e.path());
    }
    const auto read = [](fs::path p) -> task<std::set<std::string>> {
        std::set<std::string> all;
        auto entries = fs::read_directory(p);
        while (auto entry = co_await entries.next()) {
            EXPECT_EQ(entry->path().filename(), entry->name());
            EXPECT_EQ(entry->depth(), 0);
            all.insert(entry->path());
        }
        co_return all;
    };
    EXPECT_EQ(coil::run(read(tmp / "t")), theirs);
    EXPECT_EQ(coil::run(read((tmp / "t").native() + "/")).size(), theirs.size());
}

TEST(FsWalk, ALargeDirectoryComesEntirelyInBoundedPieces) {
    const temporary_directory tmp;
    constexpr int count = 12'000; // more than are read ahead
    for (int i = 0; i < count; ++i) {
        make_file(tmp / std::to_string(i));
    }
    const auto read = [](fs::path p) -> task<int> {
        std::set<std::string, std::less<>> seen;
        auto entries = fs::walk(p);
        while (auto entry = co_await entries.next()) {
            seen.emplace(entry->name());
            if (seen.size() % 1000 == 0) {
                co_await yield();
            }
        }
        co_return static_cast<int>(seen.size());
    };
    EXPECT_EQ(coil::run(read(tmp.path())), count);
}

task<std::error_code> error_of_walk(fs::path p, fs::directory_options options, int& count) {
    std::error_code ec;
    auto tree = fs::walk(p, options, ec);
    while (auto entry = co_await tree.next()) {
        ++count;
    }
    co_return ec;
}

TEST(FsWalk, FailsAsTheStandardDoes) {
    const temporary_directory tmp;
    make_file(tmp / "file");
    stdfs::create_symlink("loop", tmp / "loop");
    const std::string long_name(300, 'x');
    for (const stdfs::path& p : {tmp / "missing", tmp / "file", tmp / "loop", tmp / "file" / "x",
                                 tmp / long_name, stdfs::path()}) {
        std::error_code theirs;
        const stdfs::recursive_directory_iterator ignored(p, theirs);
        int count = 0;
        const std::error_code ours =
            coil::run(error_of_walk(p, fs::directory_options::none, count));
        EXPECT_EQ(ours, theirs) << p;
        try {
            const auto walk_it = [](fs::path q) -> task<> {
                auto tree = fs::walk(q);
                static_cast<void>(co_await tree.next());
            };
            coil::run(walk_it(p));
            ADD_FAILURE() << p;
        } catch (const fs::filesystem_error& e) {
            EXPECT_EQ(e.code(), theirs);
            EXPECT_EQ(e.path1(), p);
        }
    }
}

TEST(FsWalk, SkipsUnreadableDirectoriesIfRequested) {
    FS_TEST_NEEDS_FORK();
    EXPECT_EQ(in_child([]() -> std::string {
                  const temporary_directory tmp;
                  stdfs::create_directories(tmp / "open/in");
                  stdfs::create_directories(tmp / "shut/in");
                  stdfs::permissions(tmp / "shut", stdfs::perms::none);
                  stdfs::permissions(tmp.path(), stdfs::perms::all);
                  const bool was_root = ::geteuid() == 0;
                  if (was_root && ::seteuid(65534) != 0) {
                      return "seteuid";
                  }
                  int count = 0;
                  std::error_code ec =
                      coil::run(error_of_walk(tmp.path(), fs::directory_options::none, count));
                  std::string complaint;
                  if (ec != std::errc::permission_denied) {
                      complaint += "no error; ";
                  }
                  count = 0;
                  ec = coil::run(error_of_walk(
                      tmp.path(), fs::directory_options::skip_permission_denied, count));
                  if (ec || count != 3) {
                      complaint += ec.message() + " " + std::to_string(count);
                  }
                  if (was_root && ::seteuid(0) != 0) {
                      return "seteuid";
                  }
                  stdfs::permissions(tmp / "shut", stdfs::perms::all);
                  return complaint;
              }),
              "");
}

TEST(FsWalk, FollowsLinksButNotInACircle) {
    const temporary_directory tmp;
    stdfs::create_directories(tmp / "top/a/b");
    stdfs::create_directories(tmp / "aside/c");
    make_file(tmp / "aside/c/file");
    stdfs::create_directory_symlink("../../../aside", tmp / "top/a/b/aside");
    stdfs::create_directory_symlink("..", tmp / "top/a/b/up");
    stdfs::create_directory_symlink("../../..", tmp / "top/a/b/above");
    stdfs::create_directory_symlink(tmp / "top", tmp / "aside/round");
    int count = 0;
    EXPECT_FALSE(coil::run(
        error_of_walk(tmp / "top", fs::directory_options::follow_directory_symlink, count)));
    // a and b; in b: aside, up, above; in aside: c, c/file, round. `above` leads to the parent of
    // top, with top, which is not entered because it is an ancestor, and aside with the same three.
    EXPECT_EQ(count, 13);
}

TEST(FsWalk, DescendsOnlyWhereTheOptionAllowsIt) {
    const temporary_directory tmp;
    stdfs::create_directories(tmp / "yes/deep");
    stdfs::create_directories(tmp / "no/deep");
    fs::walk_options options;
    options.descend = [](const fs::directory_entry& e) { return e.name() != "no"; };
    std::set<std::string> names;
    for (const auto& [name, ignored] : coil::run(walk_all(tmp.path(), options))) {
        names.insert(stdfs::path(name).lexically_relative(tmp.path()));
    }
    EXPECT_EQ(names, (std::set<std::string>{"no", "yes", "yes/deep"}));
}

TEST(FsWalk, EntriesOutliveTheirWalk) {
    const temporary_directory tmp;
    stdfs::create_directories(tmp / "a/b/c");
    make_file(tmp / "a/b/c/file", "12345");
    const auto last = [](fs::path p) -> task<std::uintmax_t> {
        std::optional<fs::directory_entry> kept;
        {
            auto tree = fs::walk(p);
            while (auto entry = co_await tree.next()) {
                if (entry->is_regular_file()) {
                    kept = *entry;
                }
            }
        }
        const std::set<int> before = coil_test::open_descriptors();
        const std::uintmax_t size = co_await kept->file_size();
        EXPECT_EQ(coil_test::open_descriptors(), before);
        co_return size;
    };
    EXPECT_EQ(coil::run(last(tmp.path())), 5U);
}

TEST(FsWalk, MetadataAreFetchedForAWholeBatch) {
    const temporary_directory tmp;
    for (int i = 0; i < 100; ++i) {
        make_file(tmp / std::to_string(i), "x");
    }
    const auto sizes = [](fs::path p) -> task<int> {
        auto entries = fs::read_directory(p);
        int there = 0;
        while (auto entry = co_await entries.next()) {
            const std::uintmax_t size = co_await entry->file_size();
            there += static_cast<int>(size);
            if (there == 1) { // metadata known by then is not queried again
                std::error_code ec;
                stdfs::remove_all(p, ec);
            }
        }
        co_return there;
    };
    EXPECT_EQ(coil::run(sizes(tmp.path())), 100);
}

TEST(G6_fs_walk, GoesDeepWithFewDescriptors) {
    FS_TEST_NEEDS_FORK();
    EXPECT_EQ(in_child([]() -> std::string {
                  const temporary_directory tmp;
                  const int depth = coil_test::sanitized ? 600 : coil_test::rounds(2000, 5000);
                  make_deep(tmp.path(), depth);
                  const ::rlimit few{64, 64};
                  ::setrlimit(RLIMIT_NOFILE, &few);
                  int count = 0;
                  const std::error_code ec =
                      coil::run(error_of_walk(tmp.path(), fs::directory_options::none, count));
                  const std::uintmax_t removed = coil::run(fs::remove_all(tmp / "d"));
                  if (ec || count != 2 * depth) {
                      return ec.message() + " " + std::to_string(count);
                  }
                  return removed == static_cast<std::uintmax_t>(2 * depth) ? "" : "not removed";
              }),
              "");
}

TEST(G5_fs_walk, MayBeLeftAtAnyEntry) {
    const temporary_directory tmp;
    random_tree(tmp / "t", 9, 60, 600);
    const auto some = [](fs::path p, int count) -> task<> {
        auto tree = fs::walk(p);
        for (int i = 0; i < count; ++i) {
            auto entry = co_await tree.next();
            if (!entry) {
                break;
            }
            if (i % 3 == 0) {
                std::error_code ec;
                co_await entry->lstat(ec);
            }
        }
    };
    for (int count = 0; count < 100; count += 7) {
        coil::run(some(tmp / "t", count));
        io_context ctx; // destroyed with a pending walk
        ctx.co_spawn(some(tmp / "t", count));
        ctx.co_spawn([](io_context& c, int turns) -> task<> {
            for (int i = 0; i < turns; ++i) {
                co_await yield();
            }
            c.stop();
        }(ctx, count));
        ctx.run();
    }
}

TEST(G3_fs_walk, AStopEndsIt) {
    const temporary_directory tmp;
    random_tree(tmp / "t", 9, 60, 600);
    for (int turns = 0; turns < 40; ++turns) {
        inplace_stop_source source;
        const auto stop_later = [](inplace_stop_source& s, int n) -> task<> {
            for (int i = 0; i < n; ++i) {
                co_await yield();
            }
            s.request_stop();
        };
        io_context ctx;
        int count = 0;
        auto walk_it = ctx.spawn(with_stop_token(
            error_of_walk(tmp / "t", fs::directory_options::none, count), source.get_token()));
        ctx.co_spawn(stop_later(source, turns));
        ctx.run();
        const std::error_code ec = walk_it.get();
        EXPECT_TRUE(ec == std::errc::operation_canceled || (!ec && count == 660)) << ec << count;
    }
}

} // namespace
