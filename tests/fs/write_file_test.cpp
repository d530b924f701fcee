#include "files.hpp"
#include "needs_fork.hpp"
#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"

#include <span>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace coil;
using coil_test::content_of;
using coil_test::pattern;
using coil_test::scratch;

using names = std::set<std::string>;

task<> in_place(const scratch& dir) {
    const fs::path f = dir / "f";
    co_await fs::write_file(f, "one\n");
    EXPECT_EQ(content_of(f), "one\n"); // a literal's terminating zero is not written
    co_await fs::write_file(f, "two\n", {.mode = fs::write_mode::append});
    EXPECT_EQ(content_of(f), "one\ntwo\n");
    co_await fs::write_file(f, "3", fs::write_mode::append);
    co_await fs::write_file(f, std::string("4"), fs::write_mode::append);
    std::error_code of_mode;
    co_await fs::write_file(f, "5", fs::write_mode::append, of_mode);
    co_await fs::write_file(f, std::string("6"), fs::write_mode::append, of_mode);
    EXPECT_FALSE(of_mode) << of_mode.message();
    EXPECT_EQ(content_of(f), "one\ntwo\n3456");
    co_await fs::write_file(f, std::string("7"), fs::write_mode::create_new, of_mode);
    EXPECT_EQ(of_mode, std::errc::file_exists);
    co_await fs::write_file(f, std::string_view("3"), {.durable = true});
    EXPECT_EQ(content_of(f), "3");
    const std::vector<char> bytes(70'000, 'v');
    co_await fs::write_file(f, bytes);
    EXPECT_EQ(content_of(f), std::string(70'000, 'v'));
    co_await fs::write_file(f, std::span(bytes).first(3));
    EXPECT_EQ(content_of(f), "vvv");
    co_await fs::write_file(f, "");
    EXPECT_EQ(content_of(f), "");

    std::error_code ec;
    co_await fs::write_file(f, "x", {.mode = fs::write_mode::create_new}, ec);
    EXPECT_EQ(ec, std::errc::file_exists);
    EXPECT_EQ(content_of(f), "");
    co_await fs::write_file(dir / "g", "x",
                            {.mode = fs::write_mode::create_new,
                             .durable = true,
                             .permissions = std::filesystem::perms::owner_read},
                            ec);
    EXPECT_FALSE(ec) << ec.message();
    EXPECT_EQ(std::filesystem::status(dir / "g").permissions(), std::filesystem::perms::owner_read);
    const std::string large = pattern(5'000'001);
    co_await fs::write_file(f, large, ec);
    EXPECT_FALSE(ec);
    EXPECT_EQ(content_of(f) == large, true);
    const names both{"f", "g"};
    EXPECT_EQ(dir.names(), both);
}

TEST(FsWriteFile, WritesInPlace) {
    const scratch dir;
    coil::run(in_place(dir));
}

std::string made_text() { return pattern(100'000); }

TEST(FsWriteFile, OwnsATemporaryContainerUntilTheAwait) {
    const scratch dir;
    std::error_code ec;
    task<> a = fs::write_file(dir / "a", made_text());
    task<> b = fs::write_file(dir / "b", std::vector<int>{1, 2, 3}, fs::atomic_replace);
    task<> c = fs::write_file(dir / "c", made_text(), ec);
    const auto all = [](task<> x, task<> y, task<> z) -> task<> {
        co_await std::move(x);
        co_await std::move(y);
        co_await std::move(z);
    };
    coil::run(all(std::move(a), std::move(b), std::move(c)));
    EXPECT_EQ(content_of(dir / "a") == made_text(), true);
    EXPECT_EQ(content_of(dir / "b").size(), 12U);
    EXPECT_EQ(content_of(dir / "c") == made_text(), true);
    EXPECT_FALSE(ec);
}

/// Replaces files in the directory `dir`, which may be on any file system.
task<> replaces(const scratch& dir) {
    const fs::path f = dir / "f";
    co_await fs::write_file(f, "one", fs::atomic_replace);
    EXPECT_EQ(content_of(f), "one");
    struct ::stat first{};
    EXPECT_EQ(::stat(f.c_str(), &first), 0);
    const ::mode_t mask = ::umask(0);
    ::umask(mask);
    EXPECT_EQ(first.st_mode & 07777U, 0666U & ~mask); // as any new file

    EXPECT_EQ(::chmod(f.c_str(), 04751), 0);
    std::filesystem::create_hard_link(f, dir / "old");
    const std::string large = pattern(300'000);
    co_await fs::write_file(f, large, fs::atomic_replace);
    EXPECT_EQ(content_of(f) == large, true);
    EXPECT_EQ(content_of(dir / "old"), "one"); // the old file is unchanged
    struct ::stat second{};
    EXPECT_EQ(::stat(f.c_str(), &second), 0);
    EXPECT_NE(first.st_ino, second.st_ino);
    EXPECT_EQ(second.st_mode & 07777U, 04751U);

    std::filesystem::create_directory(dir / "sub");
    std::filesystem::create_symlink("../f", dir / "sub" / "link");
    std::filesystem::create_symlink(dir / "sub" / "link", dir / "link");
    co_await fs::write_file(dir / "link", "by links", fs::atomic_replace);
    EXPECT_EQ(content_of(f), "by links");
    EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
    EXPECT_TRUE(std::filesystem::is_symlink(dir / "sub" / "link"));

    std::filesystem::create_symlink("there", dir / "dangling");
    co_await fs::write_file(dir / "dangling", "now", fs::atomic_replace);
    EXPECT_EQ(content_of(dir / "there"), "now");

    co_await fs::write_file(dir / std::string(255, 'n'), "long", fs::atomic_replace);
    const names all{"f", "old", "sub", "link", "dangling", "there", std::string(255, 'n')};
    EXPECT_EQ(dir.names(), all);
}

TEST(FsWriteFile, ReplacesInOneStep) {
    const scratch dir;
    coil::run(replaces(dir));
}

TEST(FsWriteFile, ReplacesWhatIsNamedRelativeToTheCurrentDirectory) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    EXPECT_EQ(coil_test::in_child([&]() -> std::string {
                  std::filesystem::current_path(dir.path());
                  coil::run(fs::write_file("here", "x", fs::atomic_replace));
                  return content_of(dir / "here") == "x" ? "" : "it is not there";
              }),
              "");
}

task<> cannot_replace(const scratch& dir) {
    const auto error_for = [](fs::path p) -> task<std::error_code> {
        std::error_code ec;
        co_await fs::write_file(std::move(p), "x", fs::atomic_replace, ec);
        co_return ec;
    };
    std::filesystem::create_directory(dir / "sub");
    coil_test::put(dir / "f", "f");
    std::filesystem::create_symlink("loop", dir / "loop");
    EXPECT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
    const names before = dir.names();

    std::error_code ec = co_await error_for(dir / "sub");
    EXPECT_EQ(ec, std::errc::is_a_directory);
    ec = co_await error_for(dir / "sub/");
    EXPECT_EQ(ec, std::errc::is_a_directory);
    ec = co_await error_for(dir / "sub" / "..");
    EXPECT_EQ(ec, std::errc::is_a_directory);
    ec = co_await error_for("");
    EXPECT_EQ(ec, std::errc::no_such_file_or_directory);
    ec = co_await error_for(dir / "none" / "f");
    EXPECT_EQ(ec, std::errc::no_such_file_or_directory);
    ec = co_await error_for(dir / "f" / "f");
    EXPECT_EQ(ec, std::errc::not_a_directory);
    ec = co_await error_for(dir / "loop");
    EXPECT_EQ(ec, std::errc::too_many_symbolic_link_levels);
    ec = co_await error_for(dir / std::string(256, 'n'));
    EXPECT_EQ(ec, std::errc::filename_too_long);
    ec = co_await error_for(dir / "fifo");
    EXPECT_EQ(ec, std::errc::invalid_argument); // not a regular file
    EXPECT_EQ(dir.names(), before);
    EXPECT_EQ(content_of(dir / "f"), "f");
    try {
        co_await fs::write_file(dir / "sub", "x", fs::atomic_replace);
        ADD_FAILURE() << "a directory was replaced";
    } catch (const fs::filesystem_error& e) {
        EXPECT_EQ(e.code(), std::errc::is_a_directory);
        EXPECT_EQ(e.path1(), dir / "sub");
    }
}

TEST(FsWriteFile, AFileThatCannotBeReplacedStays) {
    const scratch dir;
    coil::run(cannot_replace(dir));
}

TEST(FsWriteFile, AFileWithoutWritePermissionIsNotReplaced) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    coil_test::put(dir / "f", "f");
    ::chmod((dir / "f").c_str(), 0444);
    EXPECT_EQ(coil_test::in_child([&]() -> std::string {
                  if (::geteuid() == 0 && (::chown(dir.path().c_str(), 12345, 12345) != 0 ||
                                           ::setresgid(12345, 12345, 12345) != 0 ||
                                           ::setresuid(12345, 12345, 12345) != 0)) {
                      return "cannot become another user";
                  }
                  std::error_code ec;
                  coil::run(fs::write_file(dir / "f", "x", fs::atomic_replace, ec));
                  return ec == std::errc::permission_denied ? "" : ec.message();
              }),
              "");
    EXPECT_EQ(content_of(dir / "f"), "f");
}

TEST(FsWriteFile, AReplacementKeepsOwnerAndGroup) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can change the owner of a file";
    }
    const scratch dir;
    coil_test::put(dir / "f", "f");
    ASSERT_EQ(::chown((dir / "f").c_str(), 12345, 23456), 0);
    ASSERT_EQ(::chmod((dir / "f").c_str(), 06751), 0);
    coil::run(fs::write_file(dir / "f", "x", fs::atomic_replace));
    struct ::stat found{};
    ASSERT_EQ(::stat((dir / "f").c_str(), &found), 0);
    EXPECT_EQ(found.st_uid, 12345U);
    EXPECT_EQ(found.st_gid, 23456U);
    EXPECT_EQ(found.st_mode & 07777U, 06751U);
}

task<> write_large(fs::path p, const std::string& text, fs::write_options options,
                   std::error_code& ec) {
    co_await fs::write_file(std::move(p), text, options, ec);
}

/// Calls `stop` after that many turns.
task<> stop_after(int turns, auto stop) {
    for (int i = 0; i < turns; ++i) {
        co_await yield();
    }
    stop();
}

TEST(FsWriteFile, G3_ACancelledReplacementLeavesTheOldFileAndNothingElse) {
    const scratch dir;
    const std::string large = pattern(8U << 20);
    coil_test::put(dir / "f", "old");
    const names one{"f"};
    for (int turns = 0; turns < 200; turns += 1 + turns / 8) {
        std::error_code ec;
        inplace_stop_source stop;
        io_context context;
        context.co_spawn(write_large(dir / "f", large, fs::atomic_replace, ec), stop.get_token());
        context.co_spawn(stop_after(turns, [&] { stop.request_stop(); }));
        context.run();
        EXPECT_EQ(dir.names(), one) << turns;
        if (ec) {
            EXPECT_EQ(ec, std::errc::operation_canceled) << turns;
            EXPECT_EQ(content_of(dir / "f"), "old") << turns;
        } else {
            EXPECT_EQ(content_of(dir / "f") == large, true) << turns;
            coil_test::put(dir / "f", "old");
        }
    }
}

TEST(FsWriteFile, G5_ADestroyedReplacementLeavesTheOldOrTheNewFileAndNothingElse) {
    const scratch dir;
    const std::string large = pattern(8U << 20);
    const names one{"f"};
    for (int turns = 0; turns < 200; turns += 1 + turns / 8) {
        coil_test::put(dir / "f", "old");
        std::error_code ec;
        io_context context;
        context.co_spawn(write_large(dir / "f", large, fs::atomic_replace, ec));
        context.co_spawn(stop_after(turns, [&] { context.stop(); }));
        context.run();
        EXPECT_EQ(dir.names(), one) << turns;
        const std::string found = content_of(dir / "f");
        EXPECT_EQ(found == "old" || found == large, true) << turns;
    }
}

} // namespace
