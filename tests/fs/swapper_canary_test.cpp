#include "libc_calls.hpp"
#include "swapper.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// The checks of the swappers can fail: with an openat(2) that follows links, and an exchange of a
// directory at that moment, they find what is read, written and removed outside.

namespace {

using namespace coil;
using namespace fs_test;

int top = -1; // the directory of the arena

/// Exchanges a directory of the tree for a link that leads outside, or back.
void exchange_directory(const char* name) {
    if (name == std::string_view("in")) {
        ::syscall(SYS_renameat2, top, "tree/x/in", top, "aside/link", RENAME_EXCHANGE);
    }
}

class FsSwapperCanary : public testing::Test {
protected:
    void SetUp() override { FS_TEST_NEEDS_FORK(); }

    /// Repeats the function with weakened calls until the arena finds something.
    static void expect_caught(const std::function<void(arena&, io_context&)>& once) {
        EXPECT_EQ(coil_test::in_child([&]() -> std::string {
                      arena a(attacks[0]);
                      top = ::open((a / ".").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
                      if (!coil_test::forbid(SYS_openat2, EPERM)) {
                          return "no filter can be installed";
                      }
                      follows_links = true;
                      around_openat = exchange_directory;
                      testing::TestPartResultArray found;
                      const testing::ScopedFakeTestPartResultReporter reporter(
                          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &found);
                      const clock_type::time_point end = clock_type::now() + 60s;
                      io_context context;
                      while (clock_type::now() < end && found.size() == 0) {
                          once(a, context);
                          a.expect_outside_untouched();
                      }
                      return found.size() > 0 ? "" : "the arena has found nothing";
                  }),
                  "");
    }
};

TEST_F(FsSwapperCanary, CopyTree) {
    expect_caught([](arena& a, io_context& context) {
        std::error_code ec;
        coil_test::run_on(context, fs::copy_tree(a / "tree", a / "copy", ec));
        arena::expect_no_secret_in(a / "copy");
        stdfs::remove_all(a / "copy");
    });
}

TEST_F(FsSwapperCanary, CopyTreeIntoATree) {
    expect_caught([](arena& a, io_context& context) {
        stdfs::create_directories(a / "from/x/in");
        for (const char* const name : {"from/x/file", "from/x/in/file", "from/x/in/only"}) {
            coil_test::put(a / name, "new");
        }
        a.create_entries();
        fs::copy_tree_options options;
        options.options |= fs::copy_options::overwrite_existing;
        std::error_code ec;
        coil_test::run_on(context, fs::copy_tree(a / "from", a / "tree", options, ec));
    });
}

TEST_F(FsSwapperCanary, RemoveAll) {
    expect_caught([](arena& a, io_context& context) {
        a.create_entries();
        std::error_code ec;
        coil_test::run_on(context, fs::remove_all(a / "tree", ec));
    });
}

task<> expect_no_name_of_outside(fs::path p) {
    std::error_code ec;
    auto tree = fs::walk(std::move(p), ec);
    while (auto entry = co_await tree.next()) {
        EXPECT_NE(entry->path().filename(), "only");
    }
}

TEST_F(FsSwapperCanary, Walk) {
    expect_caught([](arena& a, io_context& context) {
        coil_test::run_on(context, expect_no_name_of_outside(a / "tree"));
    });
}

TEST_F(FsSwapperCanary, ADeviceIsFound) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can create a device";
    }
    const coil_test::scratch dir;
    for (const char* const name : {"device", "socket"}) {
        const bool is_device = name == std::string_view("device");
        ASSERT_EQ(::mknod((dir / name).c_str(), (is_device ? S_IFCHR : S_IFSOCK) | 0600U,
                          is_device ? ::makedev(60, 0) : 0),
                  0);
        EXPECT_EQ(::open((dir / name).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), -1);
        EXPECT_EQ(errno, ENXIO) << name << ": expect_no_device_opened() relies on it";
    }
}

} // namespace
