#include "support.hpp"

#include <array>

#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>

// Builders of prep_file.hpp, each compared with the system call of its name.

namespace uring_test {
namespace {

class PrepFile : public with_io_uring {
protected:
    descriptor file_with(const char* name, std::string_view content) {
        descriptor fd{::open((dir / name).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
        EXPECT_GE(fd, 0);
        EXPECT_EQ(::write(fd, content.data(), content.size()),
                  static_cast<ssize_t>(content.size()));
        ::lseek(fd, 0, SEEK_SET);
        return fd;
    }
    std::string content_of(const char* name) {
        const descriptor fd{::open((dir / name).c_str(), O_RDONLY | O_CLOEXEC)};
        std::string s(4096, '\0');
        const auto n = ::read(fd, s.data(), s.size());
        s.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
        return s;
    }
    std::int64_t size_of(const char* name) {
        struct ::stat st{};
        return ::stat((dir / name).c_str(), &st) == 0 ? st.st_size : -1;
    }

    temporary_directory dir;
};

// ---- reading and writing

TEST_F(PrepFile, ReadAndWriteAtAnOffset) {
    ring r{8};
    const descriptor fd = file_with("a", "0123456789");
    char buf[8] = {};
    EXPECT_EQ(run(r, prep::read(fd, buf, 4, 3)), 4);
    EXPECT_STREQ(buf, "3456");
    EXPECT_EQ(run(r, prep::write(fd, "xy", 2, 9)), 2);
    EXPECT_EQ(content_of("a"), "012345678xy");
    EXPECT_EQ(run(r, prep::read(fd, buf, 8, 11)), 0);
    EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 0);
}

TEST_F(PrepFile, ReadAndWriteAtTheCurrentPosition) {
    ring r{8};
    const descriptor fd = file_with("a", "0123456789");
    char buf[8] = {};
    EXPECT_EQ(run(r, prep::read(fd, buf, 2, prep::current_position)), 2);
    EXPECT_EQ(run(r, prep::read(fd, buf, 2, prep::current_position)), 2);
    EXPECT_STREQ(buf, "23");
    EXPECT_EQ(run(r, prep::write(fd, "--", 2, prep::current_position)), 2);
    EXPECT_EQ(content_of("a"), "0123--6789");
}

TEST_F(PrepFile, ErrorsAreThoseOfTheCalls) {
    ring r{8};
    char buf[8] = {};
    EXPECT_EQ(run(r, prep::read(-1, buf, 1, 0)), outcome(::read(-1, buf, 1)));
    const descriptor directory{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    EXPECT_EQ(run(r, prep::read(directory, buf, 1, 0)), outcome(::read(directory, buf, 1)));
    EXPECT_EQ(run(r, prep::write(directory, buf, 1, 0)), outcome(::write(directory, buf, 1)));
    const descriptor fd = file_with("a", "0123456789");
    void* forbidden = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(forbidden, MAP_FAILED);
    EXPECT_EQ(run(r, prep::read(fd, forbidden, 4, 0)), outcome(::read(fd, forbidden, 4)));
    EXPECT_EQ(run(r, prep::read(fd, forbidden, 4, 0)), -EFAULT);
    ::munmap(forbidden, 4096);
}

TEST_F(PrepFile, ReadvAndWritev) {
    ring r{8};
    const descriptor fd = file_with("a", "0123456789");
    char one[3] = {};
    char two[4] = {};
    const std::array<::iovec, 2> parts{{{one, 2}, {two, 3}}};
    EXPECT_EQ(run(r, prep::readv(fd, parts.data(), 2, 1)), 5);
    EXPECT_STREQ(one, "12");
    EXPECT_STREQ(two, "345");
    EXPECT_EQ(run(r, prep::writev(fd, parts.data(), 2, 0, RWF_APPEND)), 5);
    EXPECT_EQ(content_of("a"), "012345678912345");
    EXPECT_EQ(run(r, prep::writev(fd, parts.data(), 2, 0, RWF_DSYNC)), 5);
    EXPECT_EQ(content_of("a"), "123455678912345");
}

TEST_F(PrepFile, RegisteredBuffers) {
    ring r{8};
    std::array<char, 8192> memory{};
    ::iovec buffer{memory.data(), memory.size()};
    ASSERT_EQ(r.get_backend().do_register(register_op::buffers, &buffer, 1), 0);
    const descriptor fd = file_with("a", "0123456789");
    EXPECT_EQ(run(r, prep::read_fixed(fd, memory.data() + 100, 10, 0, 0)), 10);
    EXPECT_EQ(std::string_view(memory.data() + 100, 10), "0123456789");
    EXPECT_EQ(run(r, prep::write_fixed(fd, memory.data() + 105, 5, 20, 0)), 5);
    EXPECT_EQ(size_of("a"), 25);
    char outside = 0;
    EXPECT_EQ(run(r, prep::read_fixed(fd, &outside, 1, 0, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::read_fixed(fd, memory.data(), 1, 0, 1)), -EFAULT);

    COIL_NEEDS(r, readv_fixed);
    const std::array<::iovec, 2> parts{{{memory.data() + 200, 3}, {memory.data() + 300, 4}}};
    EXPECT_EQ(run(r, prep::readv_fixed(fd, parts.data(), 2, 1, 0)), 7);
    EXPECT_EQ(std::string_view(memory.data() + 200, 3), "123");
    EXPECT_EQ(std::string_view(memory.data() + 300, 4), "4567");
    EXPECT_EQ(run(r, prep::writev_fixed(fd, parts.data(), 2, 0, 0)), 7);
    EXPECT_EQ(content_of("a").substr(0, 10), "1234567789");
}

TEST_F(PrepFile, ProvidedBuffers) {
    ring r{8};
    std::array<char, 4 * 16> memory{};
    const descriptor fd = file_with("a", "0123456789abcdefghij");
    EXPECT_EQ(run(r, prep::read(fd, nullptr, 16, 0), sqe_flag::buffer_select), -ENOBUFS);
    EXPECT_EQ(run(r, prep::provide_buffers(memory.data(), 16, 4, 7, 30)), 0);
    sqe s = prep::read(fd, nullptr, 16, 0);
    s.buf_group = 7;
    const cqe c = complete(r, s, sqe_flag::buffer_select);
    EXPECT_EQ(c.res, 16);
    ASSERT_TRUE(c.flags & cqe_flag::buffer);
    ASSERT_GE(buffer_id(c), 30);
    ASSERT_LT(buffer_id(c), 34);
    EXPECT_EQ(std::string_view(memory.data() + (buffer_id(c) - 30) * 16, 16), "0123456789abcdef");
    EXPECT_EQ(run(r, prep::remove_buffers(10, 7)), 3);
    EXPECT_EQ(run(r, prep::remove_buffers(10, 8)), -ENOENT);
}

TEST_F(PrepFile, ReadMultishotContinues) {
    ring r{8};
    COIL_NEEDS(r, read_multishot);
    std::array<char, 4 * 16> memory{};
    EXPECT_EQ(run(r, prep::provide_buffers(memory.data(), 16, 4, 3, 0)), 0);
    pipe_pair p;
    queue(r, prep::read_multishot(p.in, 0, prep::current_position, 3), 1);
    ASSERT_EQ(r.submit(), 1);
    for (const char* text : {"one", "two"}) {
        ASSERT_EQ(::write(p.out, text, 3), 3);
        const cqe c = next(r);
        EXPECT_EQ(c.res, 3);
        EXPECT_TRUE(c.flags & cqe_flag::more);
        EXPECT_EQ(std::string_view(memory.data() + buffer_id(c) * 16, 3), text);
    }
    p.out.reset();
    const cqe last = next(r);
    EXPECT_EQ(last.res, 0);
    EXPECT_FALSE(last.flags & cqe_flag::more);
}

// ---- open and close

TEST_F(PrepFile, OpenatAndClose) {
    ring r{8};
    const std::string path = dir / "new";
    const int fd = run(r, prep::openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0640));
    ASSERT_GE(fd, 0);
    struct ::stat st{};
    ASSERT_EQ(::fstat(fd, &st), 0);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    EXPECT_EQ(st.st_mode & 07777, 0640 & ~mask);
    EXPECT_EQ(run(r, prep::openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0640)),
              -EEXIST);
    EXPECT_EQ(run(r, prep::openat(AT_FDCWD, (dir / "none").c_str(), O_RDONLY)), -ENOENT);
    EXPECT_EQ(run(r, prep::close(fd)), 0);
    EXPECT_EQ(run(r, prep::close(fd)), -EBADF);
}

TEST_F(PrepFile, Openat2) {
    ring r{8};
    file_with("a", "content");
    const descriptor at{::open((dir / ".").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    ::open_how how{};
    how.flags = O_RDONLY;
    how.resolve = RESOLVE_BENEATH;
    const descriptor fd{run(r, prep::openat2(at, "a", &how, sizeof how))};
    EXPECT_GE(fd, 0);
    EXPECT_EQ(run(r, prep::openat2(at, "../a", &how, sizeof how)), -EXDEV);
}

TEST_F(PrepFile, DirectDescriptors) {
    ring r{8};
    file_with("a", "content");
    const std::string path = dir / "a";
    std::array<int, 4> table{-1, -1, -1, -1};
    ASSERT_EQ(r.get_backend().do_register(register_op::files, table.data(), 4), 0);
    char buf[8] = {};
    const auto read_slot = [&](int slot) {
        return run(r, prep::read(slot, buf, 7, 0), sqe_flag::fixed_file);
    };
    EXPECT_EQ(run(r, prep::openat_direct(AT_FDCWD, path.c_str(), O_RDONLY, 0, 2)), 0);
    EXPECT_EQ(read_slot(2), 7);
    EXPECT_STREQ(buf, "content");
    EXPECT_EQ(read_slot(1), -EBADF);

    const int chosen =
        run(r, prep::openat_direct(AT_FDCWD, path.c_str(), O_RDONLY, 0, file_index_alloc));
    if (chosen != -EINVAL) { // Linux 5.19
        EXPECT_TRUE(chosen == 0 || chosen == 1 || chosen == 3) << chosen;
        EXPECT_EQ(read_slot(chosen), 7);
        EXPECT_EQ(run(r, prep::close_direct(static_cast<std::uint32_t>(chosen))), 0);
    }
    ::open_how how{};
    how.flags = O_RDONLY;
    EXPECT_EQ(run(r, prep::openat2_direct(AT_FDCWD, path.c_str(), &how, sizeof how, 3)), 0);
    EXPECT_EQ(read_slot(3), 7);

    EXPECT_EQ(run(r, prep::close_direct(2)), 0);
    EXPECT_EQ(read_slot(2), -EBADF);
    EXPECT_EQ(run(r, prep::close_direct(2)), -EBADF);

    const descriptor plain{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    std::array<int, 2> update{plain, -1};
    EXPECT_EQ(run(r, prep::files_update(update.data(), 2, 2)), 2);
    EXPECT_EQ(read_slot(2), 7);
    EXPECT_EQ(read_slot(3), -EBADF);

    COIL_NEEDS(r, fixed_fd_install);
    const descriptor installed{run(r, prep::fixed_fd_install(2))};
    ASSERT_GE(installed, 0);
    EXPECT_EQ(::fcntl(installed, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(::pread(installed, buf, 7, 0), 7);
    const descriptor inherited{run(r, prep::fixed_fd_install(2, fixed_fd_flag::no_cloexec))};
    EXPECT_EQ(::fcntl(inherited, F_GETFD), 0);
    EXPECT_EQ(run(r, prep::fixed_fd_install(3)), -EBADF);
}

// ---- metadata, space, durability

TEST_F(PrepFile, StatxReportsWhatTheSystemCallReports) {
    ring r{8};
    file_with("a", "0123456789");
    const std::string path = dir / "a";
    struct ::statx theirs{};
    struct ::statx ours{};
    ASSERT_EQ(::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS, &theirs), 0);
    EXPECT_EQ(run(r, prep::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS, &ours)), 0);
    EXPECT_EQ(ours.stx_size, 10U);
    EXPECT_EQ(ours.stx_ino, theirs.stx_ino);
    EXPECT_EQ(ours.stx_mode, theirs.stx_mode);
    EXPECT_EQ(ours.stx_mtime.tv_nsec, theirs.stx_mtime.tv_nsec);
    const descriptor fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    ours = {};
    EXPECT_EQ(run(r, prep::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &ours)), 0);
    EXPECT_EQ(ours.stx_size, 10U);
    EXPECT_EQ(run(r, prep::statx(AT_FDCWD, (dir / "none").c_str(), 0, STATX_SIZE, &ours)), -ENOENT);
}

TEST_F(PrepFile, Syncing) {
    ring r{8};
    const descriptor fd = file_with("a", "0123456789");
    EXPECT_EQ(run(r, prep::fsync(fd)), 0);
    EXPECT_EQ(run(r, prep::fdatasync(fd)), 0);
    EXPECT_EQ(run(r, prep::sync_file_range(fd, 0, 10, SYNC_FILE_RANGE_WRITE)), 0);
    pipe_pair p;
    EXPECT_EQ(run(r, prep::fsync(p.in)), outcome(::fsync(p.in)));
    EXPECT_EQ(run(r, prep::sync_file_range(p.in, 0, 1, SYNC_FILE_RANGE_WRITE)),
              outcome(::sync_file_range(p.in, 0, 1, SYNC_FILE_RANGE_WRITE)));
    EXPECT_EQ(prep::fdatasync(fd).fsync_flags, fsync_flag::datasync);
}

TEST_F(PrepFile, Sizes) {
    ring r{8};
    const descriptor fd = file_with("a", "0123456789");
    EXPECT_EQ(run(r, prep::fallocate(fd, 0, 5, 100)), 0);
    EXPECT_EQ(size_of("a"), 105);
    EXPECT_EQ(run(r, prep::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1000)), 0);
    EXPECT_EQ(size_of("a"), 105);
    EXPECT_EQ(run(r, prep::fallocate(-1, 0, 0, 1)), -EBADF);
    COIL_NEEDS(r, ftruncate);
    EXPECT_EQ(run(r, prep::ftruncate(fd, 3)), 0);
    EXPECT_EQ(content_of("a"), "012");
    EXPECT_EQ(run(r, prep::ftruncate(fd, 5'000'000'000)), 0);
    EXPECT_EQ(size_of("a"), 5'000'000'000);
}

TEST_F(PrepFile, Advice) {
    ring r{8};
    const descriptor fd = file_with("a", "0123456789");
    EXPECT_EQ(run(r, prep::fadvise(fd, 0, 10, POSIX_FADV_WILLNEED)), 0);
    EXPECT_EQ(run(r, prep::fadvise(fd, 0, 10, 99)), -EINVAL);
    const std::size_t size = 1 << 16;
    void* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* bytes = static_cast<volatile char*>(memory);
    bytes[size - 1] = 7;
    EXPECT_EQ(run(r, prep::madvise(memory, size, MADV_DONTNEED)), 0);
    EXPECT_EQ(bytes[size - 1], 0);
    ::munmap(memory, size);

    const sqe small = prep::fadvise(3, 0, 0xffffffff, POSIX_FADV_NORMAL);
    EXPECT_EQ(small.len, 0xffffffffU);
    EXPECT_EQ(small.addr, 0U);
    const sqe large = prep::fadvise(3, 0, 0x100000000, POSIX_FADV_NORMAL);
    EXPECT_EQ(large.len, 0U);
    EXPECT_EQ(large.addr, 0x100000000U);
    const sqe wide = prep::madvise(nullptr, 0x100000000, MADV_NORMAL);
    EXPECT_EQ(wide.len, 0U);
    EXPECT_EQ(wide.off, 0x100000000U);
}

// ---- names

TEST_F(PrepFile, Names) {
    ring r{8};
    COIL_NEEDS(r, linkat);
    file_with("a", "content");
    const std::string a = dir / "a";
    const std::string b = dir / "b";
    const std::string sub = dir / "sub";
    EXPECT_EQ(run(r, prep::renameat(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str())), 0);
    EXPECT_EQ(size_of("a"), -1);
    EXPECT_EQ(content_of("b"), "content");
    EXPECT_EQ(run(r, prep::linkat(AT_FDCWD, b.c_str(), AT_FDCWD, a.c_str(), 0)), 0);
    EXPECT_EQ(content_of("a"), "content");
    EXPECT_EQ(run(r, prep::renameat(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_NOREPLACE)),
              -EEXIST);
    EXPECT_EQ(run(r, prep::symlinkat("b", AT_FDCWD, (dir / "s").c_str())), 0);
    EXPECT_EQ(std::filesystem::read_symlink(dir / "s"), "b");
    EXPECT_EQ(run(r, prep::mkdirat(AT_FDCWD, sub.c_str(), 0700)), 0);
    EXPECT_EQ(run(r, prep::mkdirat(AT_FDCWD, sub.c_str(), 0700)), -EEXIST);

    // Relative to directories, so that the order of the arguments matters.
    const descriptor at{::open(sub.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    EXPECT_EQ(run(r, prep::renameat(AT_FDCWD, b.c_str(), at, "inside")), 0);
    EXPECT_EQ(content_of("sub/inside"), "content");
    EXPECT_EQ(run(r, prep::linkat(at, "inside", AT_FDCWD, b.c_str(), 0)), 0);
    EXPECT_EQ(run(r, prep::symlinkat("inside", at, "link")), 0);
    EXPECT_EQ(content_of("sub/link"), "content");
    EXPECT_EQ(run(r, prep::linkat(at, "link", at, "hard", AT_SYMLINK_FOLLOW)), 0);
    EXPECT_EQ(content_of("sub/hard"), "content");

    EXPECT_EQ(run(r, prep::unlinkat(at, "inside", 0)), 0);
    EXPECT_EQ(run(r, prep::unlinkat(at, "inside", 0)), -ENOENT);
    EXPECT_EQ(run(r, prep::unlinkat(AT_FDCWD, sub.c_str(), 0)), -EISDIR);
    EXPECT_EQ(run(r, prep::unlinkat(AT_FDCWD, sub.c_str(), AT_REMOVEDIR)), -ENOTEMPTY);
    EXPECT_EQ(run(r, prep::unlinkat(at, "link", 0)), 0);
    EXPECT_EQ(run(r, prep::unlinkat(at, "hard", 0)), 0);
    EXPECT_EQ(run(r, prep::unlinkat(AT_FDCWD, sub.c_str(), AT_REMOVEDIR)), 0);
}

TEST_F(PrepFile, ExtendedAttributes) {
    ring r{8};
    COIL_NEEDS(r, getxattr);
    const descriptor fd = file_with("a", "content");
    const std::string path = dir / "a";
    const int expected = outcome(::setxattr(path.c_str(), "user.coil0", "v", 1, 0));
    EXPECT_EQ(run(r, prep::setxattr(path.c_str(), "user.coil", "value", 5, 0)), expected);
    if (expected != 0) {
        GTEST_SKIP() << "the file system has no extended attributes";
    }
    char buf[16] = {};
    EXPECT_EQ(run(r, prep::getxattr(path.c_str(), "user.coil", buf, sizeof buf)), 5);
    EXPECT_STREQ(buf, "value");
    EXPECT_EQ(run(r, prep::setxattr(path.c_str(), "user.coil", "x", 1, XATTR_CREATE)), -EEXIST);
    EXPECT_EQ(run(r, prep::fsetxattr(fd, "user.coil", "longer value", 12, XATTR_REPLACE)), 0);
    EXPECT_EQ(run(r, prep::fsetxattr(fd, "user.none", "x", 1, XATTR_REPLACE)), -ENODATA);
    EXPECT_EQ(run(r, prep::fgetxattr(fd, "user.coil", buf, sizeof buf)), 12);
    EXPECT_STREQ(buf, "longer value");
    EXPECT_EQ(run(r, prep::fgetxattr(fd, "user.coil", buf, 3)), -ERANGE);
    EXPECT_EQ(run(r, prep::getxattr(path.c_str(), "user.none", buf, 3)), -ENODATA);
}

// ---- pipes

TEST_F(PrepFile, SpliceAndTee) {
    ring r{8};
    COIL_NEEDS(r, splice);
    const descriptor in = file_with("in", "0123456789");
    const descriptor out = file_with("out", "----------");
    pipe_pair p;
    pipe_pair q;
    EXPECT_EQ(run(r, prep::splice(in, 2, p.out, prep::current_position, 5)), 5);
    EXPECT_EQ(::lseek(in, 0, SEEK_CUR), 0); // an offset by value does not move the position
    EXPECT_EQ(run(r, prep::tee(p.in, q.out, 3)), 3);
    EXPECT_EQ(run(r, prep::splice(p.in, prep::current_position, out, 4, 100)), 5);
    EXPECT_EQ(content_of("out"), "----23456-");
    char buf[8] = {};
    EXPECT_EQ(::read(q.in, buf, 8), 3);
    EXPECT_STREQ(buf, "234");
    EXPECT_EQ(run(r, prep::splice(in, prep::current_position, q.out, prep::current_position, 4)),
              4);
    EXPECT_EQ(::lseek(in, 0, SEEK_CUR), 4);
    EXPECT_EQ(run(r, prep::splice(in, 0, out, 0, 4)), -EINVAL); // not a pipe
}

TEST_F(PrepFile, PipeMakesAPipe) {
    ring r{8};
    COIL_NEEDS(r, pipe);
    int fds[2] = {-1, -1};
    ASSERT_EQ(run(r, prep::pipe(fds, O_CLOEXEC | O_NONBLOCK)), 0);
    const descriptor in{fds[0]};
    const descriptor out{fds[1]};
    EXPECT_EQ(::fcntl(in, F_GETFD), FD_CLOEXEC);
    EXPECT_TRUE(::fcntl(out, F_GETFL) & O_NONBLOCK);
    char byte = 0;
    EXPECT_EQ(::write(out, "x", 1), 1);
    EXPECT_EQ(::read(in, &byte, 1), 1);

    std::array<int, 4> table{-1, -1, -1, -1};
    ASSERT_EQ(r.get_backend().do_register(register_op::files, table.data(), 4), 0);
    ASSERT_EQ(run(r, prep::pipe_direct(fds, 0, 1)), 0);
    EXPECT_EQ(run(r, prep::write(2, "y", 1, prep::current_position), sqe_flag::fixed_file), 1);
    EXPECT_EQ(run(r, prep::read(1, &byte, 1, prep::current_position), sqe_flag::fixed_file), 1);
    EXPECT_EQ(byte, 'y');
}

} // namespace
} // namespace uring_test
