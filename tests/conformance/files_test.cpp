// Files on every backend: transfers, offsets, end of file, errors.

#include "conformance/support.hpp"

#include <sys/stat.h>
#include <sys/uio.h>

namespace conformance {

namespace {

class Files : public Conformance {};
COIL_ON_ALL_BACKENDS(Files);

task<int> opened(std::string path, int flags = O_RDWR | O_CREAT | O_EXCL) {
    co_return co_await io::open(path, flags | O_CLOEXEC, 0600);
}

task<long> size_of(int fd) {
    struct ::statx found{};
    const int r = co_await io::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &found);
    EXPECT_EQ(r, 0);
    co_return static_cast<long>(found.stx_size);
}

task<> transfers(std::string directory) {
    char buf[16] = {};
    const int fd = co_await opened(directory + "f");
    EXPECT_GE(fd, 0);
    co_await gives(io::read(fd, buf), 0, "empty");
    co_await gives(io::write(fd, "0123456789"), 10);
    co_await gives(io::read(fd, buf), 0, "the position is at the end");
    co_await gives(io::read(fd, {buf, 4}, 3), 4);
    EXPECT_EQ(text(buf, 4), "3456");
    co_await gives(io::read(fd, buf, 8), 2, "as much as there is");
    co_await gives(io::read(fd, buf, 10), 0);
    co_await gives(io::read(fd, buf, 1000), 0);
    co_await gives(io::write(fd, "ab", 8), 2);
    co_await gives(io::write(fd, "z", 12), 1, "behind a hole");
    co_await gives(size_of(fd), 13);
    co_await gives(io::read(fd, buf, 8), 5);
    EXPECT_EQ(text(buf, 5), std::string_view("ab\0\0z", 5));
    co_await gives(io::read(fd, {buf, 0}, 0), 0);
    co_await gives(io::write(fd, {buf, 0}, 100), 0);
    co_await gives(size_of(fd), 13);
    co_await gives(io::write(fd, "current"), 7, "the position was 10");
    co_await gives(size_of(fd), 17);
    co_await gives(io::close(fd), 0);
    co_await gives(io::close(fd), -EBADF);
    co_await gives(io::read(fd, buf), -EBADF);
    co_await gives(io::write(-1, "x"), -EBADF);
    co_await gives(io::fsync(-1), -EBADF);
}
TEST_P(Files, Transfers) { run(transfers(directory())); }

task<> vectors(std::string directory) {
    const int fd = co_await opened(directory + "f");
    char a[] = "abc";
    char b[] = "defg";
    ::iovec parts[] = {{a, 3}, {b, 0}, {b, 4}};
    co_await gives(io::writev(fd, parts, 0), 7);
    char c[2] = {};
    char d[8] = {};
    ::iovec into[] = {{c, 2}, {d, 8}};
    co_await gives(io::readv(fd, into, 1), 6);
    EXPECT_EQ(text(c, 2), "bc");
    EXPECT_EQ(text(d, 4), "defg");
    co_await gives(io::readv(fd, {into, 0}, 0), 0);
    co_await gives(io::close(fd), 0);
}
TEST_P(Files, Vectors) { run(vectors(directory())); }

task<> openings(std::string directory) {
    const std::string name = directory + "f";
    char buf[8];
    co_await gives(opened(name, O_RDONLY), -ENOENT);
    const int fd = co_await opened(name);
    co_await gives(opened(name), -EEXIST);
    co_await gives(opened(name + "/g", O_RDONLY), -ENOTDIR);
    co_await gives(opened(name, O_RDONLY | O_DIRECTORY), -ENOTDIR);
    co_await gives(opened(directory, O_WRONLY), -EISDIR);
    co_await gives(io::write(fd, "content", 0), 7);
    const int reader = co_await opened(name, O_RDONLY);
    co_await gives(io::write(reader, "x"), -EBADF, "not open for writing");
    const int writer = co_await opened(name, O_WRONLY);
    co_await gives(io::read(writer, buf), -EBADF, "not open for reading");
    const int appender = co_await opened(name, O_WRONLY | O_APPEND);
    co_await gives(io::write(appender, "!"), 1);
    co_await gives(io::write(appender, "?", 0), 1, "at the end, wherever");
    co_await gives(size_of(fd), 9);
    const int cut = co_await opened(name, O_WRONLY | O_TRUNC);
    co_await gives(size_of(fd), 0);
    for (const int one : {fd, reader, writer, appender, cut}) {
        co_await gives(io::close(one), 0);
    }
}
TEST_P(Files, Openings) { run(openings(directory())); }

task<> sizes(std::string directory) {
    const int fd = co_await opened(directory + "f");
    char buf[8] = {'x', 'x', 'x'};
    co_await gives(io::ftruncate(fd, 5), 0);
    co_await gives(size_of(fd), 5);
    co_await gives(io::read(fd, buf, 2), 3);
    EXPECT_EQ(text(buf, 3), std::string_view("\0\0\0", 3));
    co_await gives(io::ftruncate(fd, 1), 0);
    co_await gives(size_of(fd), 1);
    co_await gives(io::ftruncate(fd, -1), -EINVAL);
    co_await gives(io::fallocate(fd, 0, 0, 100), 0);
    co_await gives(size_of(fd), 100);
    constexpr int punch = FALLOC_FL_PUNCH_HOLE;
    co_await gives(io::fallocate(fd, punch, 0, 10), -EOPNOTSUPP, "only with KEEP_SIZE");
    co_await gives(io::fallocate(fd, punch | FALLOC_FL_KEEP_SIZE | FALLOC_FL_ZERO_RANGE, 0, 10),
                   -EOPNOTSUPP);
    co_await gives(io::fallocate(fd, punch | FALLOC_FL_KEEP_SIZE, 0, 10), 0);
    const int reader = co_await opened(directory + "f", O_RDONLY);
    co_await gives(io::fallocate(reader, 0, 0, 0), -EINVAL, "before the missing permission");
    co_await gives(io::fallocate(reader, punch, 0, 10), -EOPNOTSUPP);
    co_await gives(io::fallocate(reader, 0, 0, 10), -EBADF);
    co_await gives(io::close(reader), 0);
    co_await gives(io::fsync(fd), 0);
    co_await gives(io::fdatasync(fd), 0);
    co_await gives(io::close(fd), 0);
}
TEST_P(Files, Sizes) { run(sizes(directory())); }

task<> names(std::string directory) {
    const std::string f = directory + "f";
    const std::string g = directory + "g";
    const std::string d = directory + "d";
    struct ::statx found{};
    co_await gives(io::mkdir(d, 0700), 0);
    co_await gives(io::mkdir(d, 0700), -EEXIST);
    co_await gives(io::mkdir(directory + "no/d", 0700), -ENOENT);
    const int fd = co_await opened(f);
    co_await gives(io::write(fd, "1"), 1);
    co_await gives(io::link(f, g), 0);
    co_await gives(io::link(f, g), -EEXIST);
    co_await gives(io::statx(AT_FDCWD, g, 0, STATX_BASIC_STATS, &found), 0);
    EXPECT_EQ(found.stx_nlink, 2U);
    EXPECT_EQ(found.stx_size, 1U);
    EXPECT_TRUE(S_ISREG(found.stx_mode));
    co_await gives(io::unlink(f), 0);
    co_await gives(io::unlink(f), -ENOENT);
    co_await gives(io::statx(AT_FDCWD, f, 0, STATX_SIZE, &found), -ENOENT);
    co_await gives(io::rename(g, f), 0);
    co_await gives(io::rename(g, f), -ENOENT);
    co_await gives(io::rename(f, d), -EISDIR);
    co_await gives(io::rename(d, f), -ENOTDIR);
    co_await gives(io::rename(f, d + "/f"), 0);
    co_await gives(io::rmdir(d), -ENOTEMPTY);
    co_await gives(io::unlink(d), -EISDIR);
    co_await gives(io::symlink("d/f", f), 0);
    co_await gives(io::statx(AT_FDCWD, f, 0, STATX_BASIC_STATS, &found), 0);
    EXPECT_TRUE(S_ISREG(found.stx_mode));
    co_await gives(io::statx(AT_FDCWD, f, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &found), 0);
    EXPECT_TRUE(S_ISLNK(found.stx_mode));
    co_await gives(io::unlink(d + "/f"), 0);
    co_await gives(io::rmdir(d), 0);
    co_await gives(io::rmdir(f), -ENOTDIR);
    co_await gives(io::unlink(f), 0);
    co_await gives(io::write(fd, "2"), 1, "the file lives while it is open");
    co_await gives(size_of(fd), 2);
    co_await gives(io::close(fd), 0);
}
TEST_P(Files, Names) { run(names(directory())); }

task<> nothing() {
    co_await gives(io::nop(), 0);
    co_await gives(io::nop() && io::nop(), 0);
}
TEST_P(Files, Nop) { run(nothing()); }

} // namespace

} // namespace conformance
