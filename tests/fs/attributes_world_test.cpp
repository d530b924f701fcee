#include "other_users.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

// Attributes of copies and replacements in a simulated world, where programs run as root.

namespace {

using namespace coil;

using fs_test::stranger;

int perform(const uring::sqe& call) { return coil::detail::current_world()->perform(call); }

task<> make(fs::path p, ::uid_t owner) {
    co_await fs::write_file(p, "old");
    EXPECT_EQ(perform(uring::prep::fchownat(AT_FDCWD, p.c_str(), owner, owner, 0)), 0);
    co_await fs::permissions(p, static_cast<fs::perms>(06751));
}

void expect(const fs::path& p, ::uid_t owner, ::mode_t mode) {
    struct ::statx found{};
    EXPECT_EQ(perform(uring::prep::statx(AT_FDCWD, p.c_str(), 0, STATX_BASIC_STATS, &found)), 0)
        << p;
    EXPECT_EQ(found.stx_uid, owner) << p;
    EXPECT_EQ(found.stx_mode & 07777U, mode) << p;
}

task<int> copies_and_replacements() {
    co_await fs::create_directory("/from");
    co_await make("/from/own", 0);
    co_await make("/from/theirs", stranger);
    co_await fs::create_symlink("own", "/from/link");
    fs::copy_tree_options keeping;
    keeping.owner = true;
    co_await fs::copy_tree("/from", "/kept", keeping);
    co_await fs::copy_tree("/from", "/plain");
    co_await fs::copy("/from", "/copied", fs::copy_options::recursive);
    co_await fs::copy_file("/from/own", "/own");
    co_await fs::copy_file("/from/theirs", "/theirs");
    expect("/kept/own", 0, 06751);
    expect("/kept/theirs", stranger, 06751);
    expect("/plain/own", 0, 0751);
    expect("/plain/theirs", 0, 0751);
    for (const fs::path where : {"/copied", "/"}) {
        expect(where / "own", 0, 06751);
        expect(where / "theirs", 0, 0751);
    }
    for (const char* const name : {"/from/own", "/from/theirs"}) {
        co_await fs::write_file(name, "new", fs::atomic_replace);
        EXPECT_EQ(co_await fs::read_file(name), "new");
    }
    expect("/from/own", 0, 06751);
    expect("/from/theirs", stranger, 06751);

    co_await fs::create_hard_link("/from/own", "/other");
    keeping.options |= fs::copy_options::overwrite_existing;
    co_await fs::remove("/from/link");
    co_await fs::copy_tree("/kept", "/from", keeping);
    EXPECT_EQ(co_await fs::read_file("/from/own"), "old");
    EXPECT_EQ(co_await fs::read_file("/other"), "new");
    co_return 0;
}

TEST(FsAttributes, AreKeptInAWorldByTheSameRules) {
    sim::world w{1};
    auto done = w.host("h").spawn(copies_and_replacements());
    w.run();
    ASSERT_TRUE(done.done());
    EXPECT_EQ(done.get(), 0);
}

} // namespace
