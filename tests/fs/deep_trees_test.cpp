#include "needs_fork.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"
#include "support/seccomp.hpp"
#include "trees.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Trees with more levels than a path can have, or than can be open at a time.

namespace {

using namespace coil;
using namespace fs_test;

/// A deep tree, in memory if possible: an ext4 file system takes 4 KiB for each directory.
class deep_tree {
public:
    explicit deep_tree(int depth) {
        stdfs::create_directory(top());
        make_deep(top(), depth);
    }
    deep_tree(const deep_tree&) = delete;
    deep_tree& operator=(const deep_tree&) = delete;
    ~deep_tree() { // std::filesystem::remove_all recurses
        std::error_code ec;
        coil::run(fs::remove_all(dir_, ec));
    }
    [[nodiscard]] stdfs::path top() const { return dir_ + "/from"; }
    [[nodiscard]] stdfs::path copy() const { return dir_ + "/to"; }

private:
    static std::string make() {
        std::string name = ::access("/dev/shm", W_OK) == 0
                               ? "/dev/shm/coil-deep-XXXXXX"
                               : (stdfs::temp_directory_path() / "coil-deep-XXXXXX").string();
        return ::mkdtemp(name.data());
    }
    const std::string dir_ = make();
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Counts the entries and queries the status of each. Without `with_metadata`, the directories of
/// the entries that were read before the first query are reopened.
task<std::uintmax_t> count_with_status(fs::path top, bool with_metadata) {
    std::uintmax_t count = 0;
    fs::walk_options options;
    options.with_metadata = with_metadata;
    auto tree = fs::walk(top, options);
    while (auto entry = co_await tree.next()) {
        const fs::file_status status = co_await entry->status();
        count += status.type() == stdfs::file_type::directory ? 1 : 0;
    }
    co_return count;
}

/// Returns the failures: a wrong number of entries, or too much processor time per level. The time
/// of a quadratic algorithm is several times the limit.
std::string use_deep_tree(int depth, bool with_metadata) {
    std::string wrong;
    const double limit = depth * (coil_test::sanitized ? 10e-3 : 250e-6);
    const deep_tree tree(depth);
    const auto count = static_cast<std::uintmax_t>(2 * depth);
    const auto measured = [&](const char* what, std::uintmax_t expected, auto function) {
        const double before = cpu_seconds();
        const std::uintmax_t done = function();
        const double used = cpu_seconds() - before;
        ::testing::Test::RecordProperty(what, std::to_string(used));
        if (done != expected) {
            wrong += std::string(what) + ": " + std::to_string(done) + " entries; ";
        }
        if (used > limit) {
            wrong += std::string(what) + ": " + std::to_string(used) + " s; ";
        }
    };
    measured("walk", count,
             [&] { return coil::run(count_with_status(tree.top(), with_metadata)); });
    measured("copy_tree", count + 1,
             [&] { return coil::run(fs::copy_tree(tree.top(), tree.copy())).entries; });
    measured("remove_all", count + 1, [&] { return coil::run(fs::remove_all(tree.copy())); });
    // copy() follows links, and therefore has to detect cycles.
    measured("copy", 0, [&] {
        coil::run(fs::copy(tree.top(), tree.copy(), fs::copy_options::recursive));
        return 0U;
    });
    measured("remove_all", count + 1, [&] { return coil::run(fs::remove_all(tree.copy())); });
    return wrong;
}

int usual_depth() { return coil_test::sanitized ? 1000 : coil_test::rounds(20'000, 100'000); }

TEST(FsDeepTrees, TakeTimeInProportionToTheirDepth) {
    EXPECT_EQ(use_deep_tree(usual_depth(), false), "");
}

TEST(FsDeepTrees, TakeTimeInProportionToTheirDepthWithFewDescriptors) {
    FS_TEST_NEEDS_FORK();
    EXPECT_EQ(coil_test::in_child([] {
                  const ::rlimit few{32, 32};
                  ::setrlimit(RLIMIT_NOFILE, &few);
                  return use_deep_tree(usual_depth(), true);
              }),
              "");
}

/// A tree of many levels with long names, and an entry of its last directory. After the walk all
/// directories are closed: a query of the entry reopens them.
class LastEntry {
public:
    static constexpr int levels = 40; // more than one path can have

    LastEntry() {
        make_levels(tmp_ / "tree", "inside");
        make_levels(tmp_ / "outside", "not to be found");
        coil::run(find());
    }

    /// Replaces the directory of a level by what `make` creates there.
    template <class Make>
    void replace(int level, Make make) {
        const coil_test::descriptor at(open_level(tmp_ / "tree", level - 1));
        ASSERT_EQ(::renameat(at, name.c_str(), at, "moved"), 0);
        make(static_cast<int>(at));
    }
    [[nodiscard]] coil_test::descriptor outside(int level) const {
        return coil_test::descriptor(open_level(tmp_ / "outside", level));
    }
    [[nodiscard]] stdfs::path outside_path() const { return tmp_ / "outside"; }

    std::error_code ask(std::uintmax_t* size = nullptr) {
        std::error_code ec;
        const std::uintmax_t found = coil::run(
            [](const fs::directory_entry& entry, std::error_code& error) -> task<std::uintmax_t> {
                co_return co_await entry.file_size(error);
            }(*entry_, ec));
        if (size != nullptr) {
            *size = found;
        }
        return ec;
    }

    const std::string name = std::string(200, 'n');

private:
    void make_levels(const stdfs::path& top, std::string_view content) const {
        stdfs::create_directory(top);
        int at = ::open(top.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (int i = 0; i < levels; ++i) {
            ::mkdirat(at, name.c_str(), 0700);
            const int below = ::openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
            ::close(at);
            at = below;
        }
        const int file = ::openat(at, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        EXPECT_EQ(::write(file, content.data(), content.size()), std::ssize(content));
        ::close(file);
        ::close(at);
    }
    [[nodiscard]] int open_level(const stdfs::path& top, int level) const {
        int at = ::open(top.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (int i = 0; i < level; ++i) {
            const int below = ::openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
            ::close(at);
            at = below;
        }
        return at;
    }
    task<> find() {
        auto tree = fs::walk(tmp_ / "tree");
        while (auto entry = co_await tree.next()) {
            if (entry->is_regular_file()) {
                entry_ = *entry;
            }
        }
    }

    temporary_directory tmp_;
    std::optional<fs::directory_entry> entry_;
};

void expect_only_the_original() {
    {
        LastEntry last;
        std::uintmax_t size = 0;
        EXPECT_FALSE(last.ask(&size));
        EXPECT_EQ(size, std::string_view("inside").size());
    }
    for (const int level : {1, 2, 19, 20, 21, 39, 40}) {
        SCOPED_TRACE(level);
        LastEntry links;
        links.replace(level, [&](int at) { // a link to the directory of the same level outside
            std::string text = links.outside_path();
            for (int i = 0; i < level && text.size() + 201 < 4000; ++i) {
                text += '/' + links.name;
            }
            ASSERT_EQ(::symlinkat(text.c_str(), at, links.name.c_str()), 0);
        });
        EXPECT_TRUE(links.ask());

        LastEntry moved_here; // another directory with the same names below it
        moved_here.replace(level, [&](int at) {
            const coil_test::descriptor outside = moved_here.outside(level - 1);
            ASSERT_EQ(::renameat(outside, moved_here.name.c_str(), at, moved_here.name.c_str()), 0);
        });
        EXPECT_TRUE(moved_here.ask());

        LastEntry removed;
        removed.replace(level, [](int) {});
        EXPECT_TRUE(removed.ask());
    }
}

TEST(FsDeepTrees, ClosedLevelsAreReopenedOnlyAsTheSameDirectories) { expect_only_the_original(); }

TEST(FsDeepTrees, ClosedLevelsAreReopenedOnlyAsTheSameDirectoriesWithoutOpenat2) {
    FS_TEST_NEEDS_FORK();
    EXPECT_EQ(coil_test::in_child([]() -> std::string {
                  if (!coil_test::forbid(SYS_openat2, EPERM)) {
                      return "no filter";
                  }
                  expect_only_the_original();
                  return ::testing::Test::HasFailure() ? "failed in the child process" : "";
              }),
              "");
}

} // namespace
