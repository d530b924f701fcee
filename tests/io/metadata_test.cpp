// Metadata, allocation, durability, advice and extended attributes: effects and results are those
// of the system calls.

#include "io/support.hpp"

#include <fstream>
#include <string>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

using namespace coil;
using io_test::outcome;
using io_test::temporary_directory;

namespace {

class Metadata : public io_test::Calls {
protected:
    coil_test::descriptor file(std::string_view contents = {}) {
        std::ofstream(dir_ / "f") << contents;
        return coil_test::descriptor{::open((dir_ / "f").c_str(), O_RDWR | O_CLOEXEC)};
    }
    ::off_t size_of(int fd) {
        struct ::stat st{};
        EXPECT_EQ(::fstat(fd, &st), 0);
        return st.st_size;
    }
    temporary_directory dir_;
};

TEST_F(Metadata, StatxReportsWhatTheSystemCallReports) {
    const auto fd = file("12345");
    struct ::statx ours{};
    struct ::statx theirs{};
    const auto path = dir_ / "f";
    EXPECT_EQ(result_of(io::statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &ours)), 0);
    ASSERT_EQ(::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS, &theirs), 0);
    EXPECT_EQ(ours.stx_size, 5U);
    EXPECT_EQ(ours.stx_ino, theirs.stx_ino);
    EXPECT_EQ(ours.stx_mode, theirs.stx_mode);
    ours = {};
    EXPECT_EQ(result_of(io::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &ours)), 0);
    EXPECT_EQ(ours.stx_size, 5U);
    EXPECT_EQ(result_of(io::statx(AT_FDCWD, dir_ / "gone", 0, STATX_SIZE, &ours)), -ENOENT);
    EXPECT_EQ(result_of(io::statx(fd, "", AT_EMPTY_PATH, STATX__RESERVED, &ours)),
              outcome(::statx(fd, "", AT_EMPTY_PATH, STATX__RESERVED, &theirs)));
}

TEST_F(Metadata, SyncingSucceedsOnFilesOnly) {
    const auto fd = file("data");
    EXPECT_EQ(result_of(io::fsync(fd)), 0);
    EXPECT_EQ(result_of(io::fdatasync(fd)), 0);
    EXPECT_EQ(result_of(io::sync_file_range(fd, 0, 4, SYNC_FILE_RANGE_WRITE)),
              outcome(::sync_file_range(fd, 0, 4, SYNC_FILE_RANGE_WRITE)));
    const coil_test::pipe_pair p;
    EXPECT_EQ(result_of(io::fsync(p.out)), outcome(::fsync(p.out)));
    EXPECT_EQ(result_of(io::fdatasync(-1)), -EBADF);
    EXPECT_EQ(result_of(io::sync_file_range(p.out, 0, 4, 0)),
              outcome(::sync_file_range(p.out, 0, 4, 0)));
    EXPECT_EQ(result_of(io::sync_file_range(fd, 0, -1, 0)),
              outcome(::sync_file_range(fd, 0, -1, 0)));
    EXPECT_EQ(result_of(io::sync_file_range(fd, 0, ::off_t{1} << 33, 0)), -EINVAL);
}

TEST_F(Metadata, WriteThenSyncAsOneChain) {
    auto chain = [](int fd) -> task<int> {
        co_return co_await (io::write(fd, "hello", 0) && io::fsync(fd));
    };
    const auto fd = file();
    EXPECT_EQ(coil::run(chain(fd)), 0);
    EXPECT_EQ(size_of(fd), 5);
}

TEST_F(Metadata, FallocateAndFtruncateSetTheSize) {
    const auto fd = file();
    const int allocated = result_of(io::fallocate(fd, 0, 0, 10000));
    if (allocated == -EOPNOTSUPP) {
        GTEST_SKIP() << "the file system of the temporary directory has no fallocate";
    }
    EXPECT_EQ(allocated, 0);
    EXPECT_EQ(size_of(fd), 10000);
    EXPECT_EQ(result_of(io::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 20000)), 0);
    EXPECT_EQ(size_of(fd), 10000);
    EXPECT_EQ(result_of(io::fallocate(fd, 0, -1, 10)), outcome(::fallocate(fd, 0, -1, 10)));
    EXPECT_EQ(result_of(io::fallocate(fd, 0, 0, 0)), outcome(::fallocate(fd, 0, 0, 0)));
    EXPECT_EQ(result_of(io::ftruncate(fd, 7)), 0);
    EXPECT_EQ(size_of(fd), 7);
    EXPECT_EQ(result_of(io::ftruncate(fd, -1)), outcome(::ftruncate(fd, -1)));
    const coil_test::descriptor reader{::open((dir_ / "f").c_str(), O_RDONLY | O_CLOEXEC)};
    EXPECT_EQ(result_of(io::ftruncate(reader, 0)), outcome(::ftruncate(reader, 0)));
}

TEST_F(Metadata, AdviceOnFilesAndMemory) {
    const auto fd = file("data");
    EXPECT_EQ(result_of(io::fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL)), 0);
    EXPECT_EQ(result_of(io::fadvise(fd, 0, 4, 12345)), -::posix_fadvise(fd, 0, 4, 12345));
    const coil_test::pipe_pair p;
    EXPECT_EQ(result_of(io::fadvise(p.in, 0, 0, POSIX_FADV_NORMAL)),
              -::posix_fadvise(p.in, 0, 0, POSIX_FADV_NORMAL));

    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto* memory = static_cast<char*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    memory[0] = 'x';
    EXPECT_EQ(result_of(io::madvise(memory, 2 * page, MADV_DONTNEED)), 0);
    EXPECT_EQ(memory[0], 0); // the page was given back
    EXPECT_EQ(result_of(io::madvise(memory + 1, page, MADV_DONTNEED)),
              outcome(::madvise(memory + 1, page, MADV_DONTNEED)));
    EXPECT_EQ(result_of(io::madvise(memory, page, 12345)), outcome(::madvise(memory, page, 12345)));
    ::munmap(memory, 2 * page);
}

TEST_F(Metadata, ExtendedAttributesByPathAndByDescriptor) {
    const auto fd = file();
    const auto path = dir_ / "f";
    const int set = result_of(io::setxattr(path, "user.a", "value"));
    if (set == -EOPNOTSUPP) {
        GTEST_SKIP() << "the file system of the temporary directory has no user attributes";
    }
    EXPECT_EQ(set, 0);
    char value[16] = {};
    EXPECT_EQ(result_of(io::getxattr(path, "user.a", value)), 5);
    EXPECT_STREQ(value, "value");
    EXPECT_EQ(result_of(io::getxattr(path, "user.a", mutable_buffer())), 5); // only the length
    EXPECT_EQ(result_of(io::getxattr(path, "user.a", {value, 2})), -ERANGE);
    EXPECT_EQ(result_of(io::setxattr(path, "user.a", "x", XATTR_CREATE)), -EEXIST);
    EXPECT_EQ(result_of(io::fsetxattr(fd, "user.b", "second")), 0);
    EXPECT_EQ(result_of(io::fgetxattr(fd, "user.b", value)), 6);
    EXPECT_STREQ(value, "second");
    EXPECT_EQ(result_of(io::fgetxattr(fd, "user.none", value)),
              outcome(::fgetxattr(fd, "user.none", value, sizeof value)));
    EXPECT_EQ(result_of(io::fsetxattr(fd, "nonsense", "v")),
              outcome(::fsetxattr(fd, "nonsense", "v", 1, 0)));
}

TEST_F(Metadata, OpenAndOpenat2) {
    const auto fd = file("text");
    const coil_test::descriptor plain{result_of(io::open(dir_ / "f", O_RDONLY | O_CLOEXEC))};
    EXPECT_GE(plain, 0);
    EXPECT_EQ(result_of(io::open(dir_ / "gone", O_RDONLY)), -ENOENT);

    ::open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH;
    const coil_test::descriptor at{::open((dir_ / ".").c_str(), O_PATH | O_CLOEXEC)};
    const coil_test::descriptor beneath{result_of(io::openat2(at, "f", &how, sizeof how))};
    EXPECT_GE(beneath, 0);
    EXPECT_EQ(result_of(io::openat2(at, "/etc/passwd", &how, sizeof how)), -EXDEV);
    how.flags = ~0ULL;
    EXPECT_EQ(result_of(io::openat2(at, "f", &how, sizeof how)), -EINVAL);
}

TEST_F(Metadata, G4_AnUnreceivedOpenat2IsClosed) {
    // The file is opened while the frame is destroyed, or not at all. A leaked descriptor is found
    // at the end of the test.
    const auto fd = file("text");
    ::open_how how{};
    how.flags = O_RDONLY;
    auto opens = [](std::filesystem::path p, ::open_how* h) -> task<> {
        co_await io::openat2(AT_FDCWD, p, h, sizeof *h);
    };
    for (int i = 0; i < 50; ++i) {
        io_context ctx;
        ctx.co_spawn(opens(dir_ / "f", &how));
        ctx.stop();
        ctx.run();
    }
}

} // namespace
