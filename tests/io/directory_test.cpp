// Directory entries: each call has the effect and the result of the system call of its name.

#include "io/support.hpp"

#include <fstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;
using io_test::outcome;
using io_test::temporary_directory;

namespace {

class Directory : public io_test::Calls {
protected:
    void make(const char* name) { std::ofstream(dir_ / name) << name; }
    bool exists(const char* name) {
        return std::filesystem::exists(std::filesystem::symlink_status(dir_ / name));
    }
    coil_test::descriptor open_directory() {
        return coil_test::descriptor{
            ::open((dir_ / ".").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    }
    temporary_directory dir_;
};

TEST_F(Directory, UnlinkRemovesAFile) {
    make("a");
    EXPECT_EQ(result_of(io::unlink(dir_ / "a")), 0);
    EXPECT_FALSE(exists("a"));
    EXPECT_EQ(result_of(io::unlink(dir_ / "a")), outcome(::unlink((dir_ / "a").c_str())));
    EXPECT_EQ(result_of(io::unlink(dir_ / ".")), outcome(::unlink((dir_ / ".").c_str())));
}

TEST_F(Directory, UnlinkatIsRelativeAndTakesFlags) {
    make("a");
    const auto at = open_directory();
    EXPECT_EQ(result_of(io::unlinkat(at, "a", 0)), 0);
    EXPECT_FALSE(exists("a"));
    EXPECT_EQ(result_of(io::unlinkat(at, "a", 0x40000)), outcome(::unlinkat(at, "a", 0x40000)));
    EXPECT_EQ(result_of(io::unlinkat(-1, "a", 0)), -EBADF);
}

TEST_F(Directory, MkdirAndRmdir) {
    EXPECT_EQ(result_of(io::mkdir(dir_ / "d", 0750)), 0);
    EXPECT_EQ(std::filesystem::status(dir_ / "d").permissions(),
              static_cast<std::filesystem::perms>(0750));
    EXPECT_EQ(result_of(io::mkdir(dir_ / "d", 0750)), -EEXIST);
    EXPECT_EQ(result_of(io::mkdirat(open_directory(), "d/e", 0700)), 0);
    EXPECT_EQ(result_of(io::rmdir(dir_ / "d")), outcome(::rmdir((dir_ / "d").c_str())));
    EXPECT_EQ(result_of(io::rmdir(dir_ / "d/e")), 0);
    EXPECT_EQ(result_of(io::rmdir(dir_ / "d")), 0);
    EXPECT_FALSE(exists("d"));
}

TEST_F(Directory, RenameReplacesUnlessForbidden) {
    make("a");
    make("b");
    const auto at = open_directory();
    EXPECT_EQ(result_of(io::renameat(at, "a", at, "b", RENAME_NOREPLACE)), -EEXIST);
    EXPECT_EQ(result_of(io::renameat(at, "a", at, "b", RENAME_EXCHANGE)), 0);
    EXPECT_TRUE(exists("a") && exists("b"));
    EXPECT_EQ(result_of(io::renameat2(at, "a", at, "b", RENAME_NOREPLACE)), -EEXIST);
    EXPECT_EQ(result_of(io::renameat2(at, "a", at, "b", 1U << 20)),
              outcome(::renameat2(at, "a", at, "b", 1U << 20)));
    EXPECT_EQ(result_of(io::renameat2(at, "a", at, "c", 0)), 0);
    EXPECT_EQ(result_of(io::renameat2(at, "c", at, "a", RENAME_NOREPLACE)), 0);
    EXPECT_TRUE(exists("a") && !exists("c"));
    EXPECT_EQ(result_of(io::rename(dir_ / "a", dir_ / "b")), 0);
    EXPECT_FALSE(exists("a"));
    EXPECT_EQ(result_of(io::rename(dir_ / "a", dir_ / "b")), -ENOENT);
}

TEST_F(Directory, LinksHardAndSymbolic) {
    make("a");
    EXPECT_EQ(result_of(io::link(dir_ / "a", dir_ / "hard")), 0);
    EXPECT_EQ(std::filesystem::hard_link_count(dir_ / "a"), 2U);
    EXPECT_EQ(result_of(io::symlink("a", dir_ / "soft")), 0);
    EXPECT_EQ(std::filesystem::read_symlink(dir_ / "soft"), "a");
    EXPECT_EQ(result_of(io::symlink("a", dir_ / "soft")), -EEXIST);
    EXPECT_EQ(result_of(io::symlinkat("gone", open_directory(), "dangling")), 0);
    // With and without following the link.
    const auto at = open_directory();
    EXPECT_EQ(result_of(io::linkat(at, "soft", at, "soft2", 0)), 0);
    EXPECT_TRUE(std::filesystem::is_symlink(dir_ / "soft2"));
    EXPECT_EQ(result_of(io::linkat(at, "soft", at, "hard2", AT_SYMLINK_FOLLOW)), 0);
    EXPECT_EQ(std::filesystem::hard_link_count(dir_ / "a"), 3U);
    EXPECT_EQ(result_of(io::link(dir_ / "gone", dir_ / "x")), -ENOENT);
}

TEST_F(Directory, AChainEndsWhereACallFails) {
    make("a");
    auto chain = [](std::filesystem::path gone, std::filesystem::path kept) -> task<int> {
        co_return co_await (io::unlink(gone) && io::unlink(kept));
    };
    EXPECT_EQ(coil::run(chain(dir_ / "gone", dir_ / "a")), -ECANCELED);
    EXPECT_TRUE(exists("a"));
}

} // namespace
