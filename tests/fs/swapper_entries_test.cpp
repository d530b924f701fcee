#include "swapper.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>

// Metadata of entries, and copies that consist of links: see swapper.hpp.

namespace {

using namespace coil;
using namespace fs_test;

class FsSwapperOfEntries : public FsSwapper {};
INSTANTIATE_TEST_SUITE_P(, FsSwapperOfEntries, testing::ValuesIn(attacks),
                         testing::PrintToStringParamName());

/// The files and directories outside of the tree.
std::set<::ino_t> inodes_outside(const arena& a) {
    std::set<::ino_t> all;
    const auto add = [&all](const stdfs::path& p) {
        struct ::stat status{};
        EXPECT_EQ(::lstat(p.c_str(), &status), 0) << p;
        all.insert(status.st_ino);
    };
    add(a / "outside");
    for (const auto& entry : stdfs::recursive_directory_iterator(a / "outside")) {
        add(entry.path());
    }
    return all;
}

task<> expect_inside(const fs::directory_entry& entry, const std::set<::ino_t>& outside) {
    std::error_code ec;
    const struct ::stat status = co_await entry.lstat(ec);
    EXPECT_TRUE(ec || !outside.contains(status.st_ino)) << entry.path();
}

/// Queries the entries during the walk, and some of them again after its end, when their
/// directories are opened again.
task<> walk_and_query(fs::path p, fs::walk_options options, const std::set<::ino_t>& outside) {
    std::vector<fs::directory_entry> kept;
    std::error_code ec;
    {
        auto tree = fs::walk(std::move(p), std::move(options), ec);
        while (auto entry = co_await tree.next()) {
            EXPECT_FALSE(entry->name() == "only") << entry->path();
            if (kept.size() % 2 == 0) {
                co_await expect_inside(*entry, outside);
            }
            kept.push_back(std::move(*entry));
        }
    }
    for (const fs::directory_entry& entry : kept) {
        co_await expect_inside(entry, outside);
    }
}

TEST_P(FsSwapperOfEntries, MetadataOfAWalk) {
    attacked([&] {
        arena a(GetParam());
        const std::set<::ino_t> outside = inodes_outside(a);
        fs::walk_options options;
        while_swapped(a, arena::names(), [&](io_context& context) {
            options.with_metadata = !options.with_metadata;
            coil_test::run_on(context, walk_and_query(a / "tree", options, outside));
        });
    });
}

/// A link to its own directory, an ancestor in every walk, would be entered endlessly.
TEST_P(FsSwapperOfEntries, WalkThatFollowsLinks) {
    attacked([&] {
        arena a(GetParam(),
                {"link_to_here", "directory", "regular", "fifo", "socket", "recreated"});
        const std::set<::ino_t> outside = inodes_outside(a);
        fs::walk_options options;
        options.directories = fs::directory_options::follow_directory_symlink;
        while_swapped(a, arena::names(), [&](io_context& context) {
            coil_test::run_on(context, walk_and_query(a / "tree", options, outside));
        });
    });
}

/// A copy that consists of links has no file from outside, and its names are those of the tree.
void copied_as_links(const arena& a, io_context& context, fs::copy_options kind,
                     const std::set<::ino_t>& outside) {
    fs::copy_tree_options options;
    options.options |= kind;
    std::error_code ec;
    coil_test::run_on(context, fs::copy_tree(a / "tree", a / "copy", options, ec));
    for (stdfs::recursive_directory_iterator i(a / "copy", ec), end; i != end; i.increment(ec)) {
        struct ::stat status{};
        ASSERT_EQ(::lstat(i->path().c_str(), &status), 0) << i->path();
        ASSERT_FALSE(outside.contains(status.st_ino)) << i->path();
        ASSERT_NE(i->path().filename(), "only") << i->path();
    }
    stdfs::remove_all(a / "copy");
}

TEST_P(FsSwapperOfEntries, CopyTreeAsHardLinks) {
    attacked([&] {
        arena a(GetParam());
        const std::set<::ino_t> outside = inodes_outside(a);
        while_swapped(a, arena::names(), [&](io_context& context) {
            copied_as_links(a, context, fs::copy_options::create_hard_links, outside);
        });
    });
}

TEST_P(FsSwapperOfEntries, CopyTreeAsSymlinks) {
    attacked([&] {
        arena a(GetParam());
        const std::set<::ino_t> outside = inodes_outside(a);
        while_swapped(a, arena::names(), [&](io_context& context) {
            copied_as_links(a, context, fs::copy_options::create_symlinks, outside);
        });
    });
}

} // namespace
