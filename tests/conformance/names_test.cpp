// Names relative to directories, extended attributes and advice, on every backend.

#include "conformance/support.hpp"

#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>

namespace conformance {

namespace {

class Names : public Conformance {};
COIL_ON_ALL_BACKENDS(Names);

constexpr int make_file = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;

task<> relative(std::string directory) {
    const int top = co_await io::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    co_await gives(io::mkdirat(top, "d", 0750), 0);
    co_await gives(io::mkdirat(top, "d", 0750), -EEXIST);
    const int below = co_await io::openat(top, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int fd = co_await io::openat(below, "f", make_file, 0640);
    EXPECT_GE(fd, 0);
    co_await gives(io::write(fd, "content"), 7);
    struct ::statx found{};
    co_await gives(io::statx(top, "d/f", 0, STATX_BASIC_STATS, &found), 0);
    EXPECT_EQ(found.stx_size, 7U);
    EXPECT_EQ(found.stx_mode & 0777, 0640);
    co_await gives(io::statx(below, "../d", 0, STATX_BASIC_STATS, &found), 0);
    EXPECT_TRUE(S_ISDIR(found.stx_mode));
    co_await gives(io::statx(fd, "x", 0, STATX_BASIC_STATS, &found), -ENOTDIR);
    co_await gives(io::statx(-1, "x", 0, STATX_BASIC_STATS, &found), -EBADF);
    co_await gives(io::linkat(below, "f", top, "g", 0), 0);
    co_await gives(io::symlinkat("g", top, "s"), 0);
    co_await gives(io::linkat(top, "s", below, "h", AT_SYMLINK_FOLLOW), 0);
    co_await gives(io::statx(below, "h", AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &found), 0);
    EXPECT_TRUE(S_ISREG(found.stx_mode));
    EXPECT_EQ(found.stx_nlink, 3U);
    co_await gives(io::openat(top, "s", O_RDONLY | O_NOFOLLOW | O_CLOEXEC), -ELOOP);
    co_await gives(io::renameat2(top, "g", below, "h", RENAME_NOREPLACE), -EEXIST);
    co_await gives(io::renameat2(top, "s", below, "f", RENAME_EXCHANGE), 0);
    co_await gives(io::statx(below, "f", AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &found), 0);
    EXPECT_TRUE(S_ISLNK(found.stx_mode));
    co_await gives(io::renameat(below, "h", top, "moved"), 0);
    co_await gives(io::unlinkat(below, "h", 0), -ENOENT);
    co_await gives(io::unlinkat(top, "d", AT_REMOVEDIR), -ENOTEMPTY);
    co_await gives(io::unlinkat(below, "f", AT_REMOVEDIR), -ENOTDIR);
    co_await gives(io::unlinkat(below, "f", 0), 0);
    co_await gives(io::unlinkat(top, "d", 0), -EISDIR);
    co_await gives(io::unlinkat(top, "d", AT_REMOVEDIR), 0);
    for (const int one : {fd, below, top}) {
        co_await gives(io::close(one), 0);
    }
}
TEST_P(Names, RelativeToDirectories) { run(relative(directory())); }

task<> in_a_removed_directory(std::string directory) {
    co_await gives(io::mkdir(directory + "d", 0700), 0);
    const int gone = co_await io::open(directory + "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    co_await gives(io::rmdir(directory + "d"), 0);
    co_await gives(io::openat(gone, "f", make_file, 0600), -ENOENT);
    co_await gives(io::mkdirat(gone, "d", 0700), -ENOENT);
    co_await gives(io::close(gone), 0);
}
TEST_P(Names, NothingIsCreatedInARemovedDirectory) { run(in_a_removed_directory(directory())); }

task<> openat2_flags(std::string directory) {
    const int top = co_await io::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::open_how how{};
    how.flags = make_file;
    how.mode = 0600;
    const int fd = co_await io::openat2(top, "f", &how, sizeof how);
    EXPECT_GE(fd, 0);
    co_await gives(io::openat2(top, "f", &how, sizeof how), -EEXIST);
    how = {};
    how.flags = O_RDONLY | O_CLOEXEC;
    const int again = co_await io::openat2(top, "f", &how, sizeof how);
    EXPECT_GE(again, 0);
    co_await gives(io::openat2(top, "none", &how, sizeof how), -ENOENT);
    co_await closed({fd, again});
    co_await gives(io::close(top), 0);
}
TEST_P(Names, Openat2) { run(openat2_flags(directory())); }

task<> openat2_resolution(std::string directory) {
    const int top = co_await io::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    co_await gives(io::symlinkat("..", top, "up"), 0);
    ::open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH;
    co_await gives(io::openat2(top, "..", &how, sizeof how), -EXDEV);
    how.resolve = RESOLVE_NO_SYMLINKS;
    co_await gives(io::openat2(top, "up", &how, sizeof how), -ELOOP);
    how.resolve = 1U << 20;
    co_await gives(io::openat2(top, "up", &how, sizeof how), -EINVAL, "an unknown flag");
    how.resolve = 0;
    how.mode = 0600;
    co_await gives(io::openat2(top, "up", &how, sizeof how), -EINVAL, "a mode without O_CREAT");
    co_await gives(io::close(top), 0);
}
TEST_P(Names, Openat2Resolves) { run(openat2_resolution(directory())); }

task<> attributes(std::string directory) {
    const std::string name = directory + "f";
    const int fd = co_await io::open(name, make_file, 0600);
    char value[16] = {};
    co_await gives(io::setxattr(name, "user.one", "first"), 0);
    co_await gives(io::setxattr(name, "user.one", "x", XATTR_CREATE), -EEXIST);
    co_await gives(io::fsetxattr(fd, "user.two", "x", XATTR_REPLACE), -ENODATA);
    co_await gives(io::getxattr(name, "user.one", value), 5);
    EXPECT_EQ(text(value, 5), "first");
    co_await gives(io::fgetxattr(fd, "user.one", {value, 0}), 5, "its length");
    co_await gives(io::fgetxattr(fd, "user.one", {value, 2}), -ERANGE);
    co_await gives(io::fsetxattr(fd, "user.two", "second"), 0);
    co_await gives(io::fgetxattr(fd, "user.two", value), 6);
    co_await gives(io::fgetxattr(fd, "user.none", value), -ENODATA);
    co_await gives(io::getxattr(name + "none", "user.one", value), -ENOENT);
    co_await gives(io::close(fd), 0);
}
TEST_P(Names, ExtendedAttributes) {
    if (::setxattr(directory().c_str(), "user.probe", "", 0, 0) != 0 && errno == EOPNOTSUPP) {
        GTEST_SKIP() << "the file system of the temporary directory has no extended attributes";
    }
    run(attributes(directory()));
}

task<> advice(std::string directory) {
    const int fd = co_await io::open(directory + "f", make_file, 0600);
    const std::string data(10'000, 'x');
    co_await gives(io::write(fd, data, 0), 10'000);
    co_await gives(io::sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE), 0);
    co_await gives(io::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_AFTER), 0);
    co_await gives(io::fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL), 0);
    co_await gives(io::fadvise(fd, 0, 4096, POSIX_FADV_WILLNEED), 0);
    co_await gives(io::fadvise(-1, 0, 0, POSIX_FADV_NORMAL), -EBADF);
    co_await gives(io::ftruncate(fd, 100), 0);
    std::string got(200, '\0');
    co_await gives(io::read(fd, got, 0), 100);
    co_await gives(io::ftruncate(-1, 0), -EBADF);
    co_await gives(io::close(fd), 0);
    void* const memory =
        ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    co_await gives(io::madvise(memory, 8192, MADV_WILLNEED), 0);
    ::munmap(memory, 8192);
}
TEST_P(Names, AdviceAndSizes) { run(advice(directory())); }

task<> wrong_advice(std::string directory) {
    const int fd = co_await io::open(directory + "f", make_file, 0600);
    co_await gives(io::fadvise(fd, 0, 0, 77), -EINVAL);
    co_await gives(io::sync_file_range(fd, -1, 4096, SYNC_FILE_RANGE_WRITE), -EINVAL);
    co_await gives(io::close(fd), 0);
    const ends p = co_await piped();
    co_await gives(io::fadvise(p.a, 0, 0, POSIX_FADV_NORMAL), -ESPIPE);
    co_await gives(io::ftruncate(p.b, 0), -EINVAL);
    co_await closed(p);
    char byte = 0;
    co_await gives(io::madvise(&byte, 1, 77), -EINVAL);
}
TEST_P(Names, WrongAdvice) { run(wrong_advice(directory())); }

} // namespace

} // namespace conformance
