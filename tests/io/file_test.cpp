// nop, openat, read, write, readv, writev, close, poll: effects and results.

#include "io/support.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

using namespace coil;
using namespace std::chrono_literals;
using io_test::outcome;
using io_test::temporary_directory;

namespace {

class File : public io_test::Calls {
protected:
    std::string contents(const std::filesystem::path& p) {
        std::ifstream in(p);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    coil_test::descriptor open(const std::filesystem::path& p, int flags) {
        coil_test::descriptor fd{::open(p.c_str(), flags | O_CLOEXEC, 0600)};
        EXPECT_GE(fd, 0);
        return fd;
    }
    temporary_directory dir_;
};

TEST_F(File, NopReturnsZero) { EXPECT_EQ(result_of(io::nop()), 0); }

TEST_F(File, OpenatMakesADescriptorWithFlagsAndMode) {
    const auto path = dir_ / "new";
    const int fd = result_of(io::openat(AT_FDCWD, path, O_CREAT | O_RDWR | O_CLOEXEC, 0640));
    ASSERT_GE(fd, 0);
    struct ::stat st{};
    ::fstat(fd, &st);
    EXPECT_EQ(st.st_mode & 0777, 0640U);
    EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    const coil_test::open_file file(fd);
    EXPECT_EQ(result_of(io::close(fd)), 0);
    EXPECT_FALSE(file.is_open());
}

TEST_F(File, OpenatIsRelativeToADirectory) {
    {
        std::ofstream(dir_ / "f") << "x";
    }
    const auto root = open(dir_ / ".", O_DIRECTORY | O_RDONLY);
    const coil_test::descriptor fd{result_of(io::openat(root, "f", O_RDONLY))};
    EXPECT_GE(fd, 0);
}

TEST_F(File, OpenatTakesEveryKindOfPath) {
    const std::filesystem::path path = dir_ / "f";
    const std::string text = path;
    {
        std::ofstream(path) << "x";
    }
    const coil_test::descriptor a{result_of(io::openat(AT_FDCWD, path, O_RDONLY))};
    const coil_test::descriptor b{result_of(io::openat(AT_FDCWD, text, O_RDONLY))};
    const coil_test::descriptor c{result_of(io::openat(AT_FDCWD, text.c_str(), O_RDONLY))};
    EXPECT_TRUE(a >= 0 && b >= 0 && c >= 0);
    // A temporary lives until the end of the full expression, and so does the operation in it.
    auto awaits = [](const std::string& p) -> task<int> {
        co_return co_await io::openat(AT_FDCWD, p + "/f", O_RDONLY);
    };
    const coil_test::descriptor d{coil::run(awaits(dir_ / "."))};
    EXPECT_GE(d, 0);
}

TEST_F(File, AFifoIsOpenedAtOnceOrByAWorkerThatWaits) {
    const std::string fifo = dir_ / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    auto main = [](const std::string& name) -> task<> {
        // Each end of the FIFO waits for the other.
        EXPECT_EQ(co_await timeout(io::force_async(io::open(name, O_WRONLY)), 5ms), -ETIMEDOUT);
        auto reads = eager(io::force_async(io::open(name, O_RDONLY)));
        const coil_test::descriptor out{co_await io::force_async(io::open(name, O_WRONLY))};
        const coil_test::descriptor in{co_await reads};
        EXPECT_GE(in, 0);
        EXPECT_GE(out, 0);
        EXPECT_EQ(co_await io::write(out, "x"), 1);
        char c = 0;
        EXPECT_EQ(co_await io::read(in, {&c, 1}), 1);
    };
    coil::run(main(fifo));
    // Without a worker, opening fails instead of waiting.
    EXPECT_EQ(result_of(io::open(fifo, O_WRONLY)), -ENXIO);
    const coil_test::descriptor in{result_of(io::open(fifo, O_RDONLY))};
    EXPECT_GE(in, 0);
    EXPECT_EQ(::fcntl(in, F_GETFL) & O_NONBLOCK, 0);
    auto main2 = [](const std::string& name, int from) -> task<> {
        char c = 0;
        auto read = eager(io::read(from, {&c, 1}));
        co_await sleep_for(1ms);
        EXPECT_FALSE(read.is_complete()); // without a writer it waits
        const coil_test::descriptor out{co_await io::open(name, O_WRONLY)};
        EXPECT_EQ(co_await io::write(out, "y"), 1);
        EXPECT_EQ(co_await read, 1);
        EXPECT_EQ(c, 'y');
    };
    coil::run(main2(fifo, in));
}

TEST_F(File, WriteAndReadAtOffsets) {
    const auto fd = open(dir_ / "f", O_CREAT | O_RDWR);
    EXPECT_EQ(result_of(io::write(fd, "hello world", 0)), 11);
    EXPECT_EQ(result_of(io::write(fd, "W", 6)), 1);
    char buf[32] = {};
    EXPECT_EQ(result_of(io::read(fd, buf, 4)), 7);
    EXPECT_STREQ(buf, "o World");
    for (const std::size_t at : {4, 6}) { // also for std::size_t
        EXPECT_EQ(result_of(io::read(fd, {buf, 5}, at)), 5);
        EXPECT_EQ(std::string_view(buf, 5), std::string_view("hello World").substr(at, 5));
        EXPECT_EQ(result_of(io::write(fd, {buf, 5}, at)), 5);
    }
    EXPECT_EQ(result_of(io::read(fd, buf, 11)), 0); // end of file
    EXPECT_EQ(result_of(io::read(fd, buf, 1000)), 0);
    EXPECT_EQ(result_of(io::write(fd, "x", 5000)), 1);
    EXPECT_EQ(std::filesystem::file_size(dir_ / "f"), 5001U);
}

TEST_F(File, WithoutAnOffsetThePositionMoves) {
    const auto fd = open(dir_ / "f", O_CREAT | O_RDWR);
    EXPECT_EQ(result_of(io::write(fd, "abc")), 3);
    EXPECT_EQ(result_of(io::write(fd, "def", io::current_position)), 3);
    EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 6);
    ::lseek(fd, 1, SEEK_SET);
    char buf[4] = {};
    EXPECT_EQ(result_of(io::read(fd, {buf, 2})), 2);
    EXPECT_EQ(result_of(io::read(fd, {buf + 2, 1})), 1);
    EXPECT_STREQ(buf, "bcd");
    EXPECT_EQ(contents(dir_ / "f"), "abcdef");
}

TEST_F(File, AnOffsetLeavesThePositionAlone) {
    const auto fd = open(dir_ / "f", O_CREAT | O_RDWR);
    EXPECT_EQ(result_of(io::write(fd, "abc", 10)), 3);
    EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 0);
}

TEST_F(File, NothingToTransferTransfersNothing) {
    const auto fd = open(dir_ / "f", O_CREAT | O_RDWR);
    EXPECT_EQ(result_of(io::write(fd, const_buffer())), 0);
    char buf[4];
    EXPECT_EQ(result_of(io::read(fd, {buf, 0})), 0);
    EXPECT_EQ(result_of(io::read(fd, {buf, -5})), 0);
}

TEST_F(File, VectorsGatherAndScatter) {
    const auto fd = open(dir_ / "f", O_CREAT | O_RDWR);
    char a[] = {'o', 'n', 'e'};
    char b[] = {'t', 'w', 'o', '!'};
    const std::array<::iovec, 2> out{{{a, 3}, {b, 4}}};
    EXPECT_EQ(result_of(io::writev(fd, out, 0)), 7);
    EXPECT_EQ(contents(dir_ / "f"), "onetwo!");
    char c[5];
    char d[10];
    const std::array<::iovec, 2> in{{{c, 5}, {d, 10}}};
    EXPECT_EQ(result_of(io::readv(fd, in, 1)), 6);
    EXPECT_EQ(std::string(c, 5) + std::string(d, 1), "netwo!");
}

TEST_F(File, VectorsWithoutAnOffsetMoveThePosition) {
    const auto fd = open(dir_ / "f", O_CREAT | O_RDWR);
    char a[] = {'1', '2'};
    const ::iovec one{a, 2};
    EXPECT_EQ(result_of(io::writev(fd, {&one, 1})), 2);
    EXPECT_EQ(result_of(io::writev(fd, {&one, 1})), 2);
    EXPECT_EQ(contents(dir_ / "f"), "1212");
}

TEST_F(File, ReadOfAPipeWaitsForData) {
    const coil_test::pipe_pair p;
    std::string order;
    auto reads = [](int fd, std::string& o) -> task<> {
        char buf[8];
        o += 'r';
        const int n = co_await io::read(fd, buf);
        o.append(buf, static_cast<std::size_t>(n));
    };
    auto writes = [](int fd, std::string& o) -> task<> {
        o += 'w';
        EXPECT_EQ(co_await io::write(fd, "data"), 4);
    };
    io_context ctx;
    ctx.co_spawn(reads(p.in, order));
    ctx.co_spawn(writes(p.out, order));
    ctx.run();
    EXPECT_EQ(order, "rwdata");
}

TEST_F(File, ReadOfAPipeWithoutWritersIsTheEnd) {
    coil_test::pipe_pair p;
    p.out.reset();
    char c;
    EXPECT_EQ(result_of(io::read(p.in, {&c, 1})), 0);
}

TEST_F(File, APipeIgnoresTheOffset) {
    const coil_test::pipe_pair p;
    p.put("abc");
    char buf[4] = {};
    EXPECT_EQ(result_of(io::read(p.in, buf, 2)), 3);
    EXPECT_STREQ(buf, "abc");
}

TEST_F(File, PollReturnsThePendingEvents) {
    coil_test::pipe_pair p;
    EXPECT_EQ(result_of(io::poll(p.out, POLLOUT)), POLLOUT);
    p.put("x");
    EXPECT_EQ(result_of(io::poll(p.in, POLLIN | POLLOUT)), POLLIN);
    p.out.reset();
    EXPECT_EQ(result_of(io::poll(p.in, POLLIN)) & (POLLIN | POLLHUP), POLLIN | POLLHUP);
}

TEST_F(File, PollWaitsForAnEvent) {
    const coil_test::pipe_pair p;
    auto main = [](const coil_test::pipe_pair& pipe) -> task<int> {
        auto write_later = [](int fd) -> task<> { co_await io::write(fd, "x"); };
        coil::co_spawn(write_later(pipe.out));
        co_return co_await io::poll(pipe.in, POLLIN);
    };
    EXPECT_EQ(coil::run(main(p)), POLLIN);
}

TEST_F(File, OperationsMayBeKeptAndMovedBeforeTheyAreAwaited) {
    const auto fd = open(dir_ / "f", O_CREAT | O_RDWR);
    auto write = io::write(fd, "later", 0);
    auto moved = std::move(write);
    EXPECT_EQ(contents(dir_ / "f"), "");
    EXPECT_EQ(result_of(std::move(moved)), 5);
    EXPECT_EQ(contents(dir_ / "f"), "later");
}

TEST_F(File, NeverAwaitedDoesNothing) {
    const auto fd = open(dir_ / "f", O_CREAT | O_RDWR);
    {
        [[maybe_unused]] const auto dropped = io::write(fd, "x", 0);
    }
    EXPECT_EQ(contents(dir_ / "f"), "");
}

// ---- the same errors as the system calls

TEST_F(File, ErrorsOfRead) {
    char buf[4];
    const auto write_only = open(dir_ / "w", O_CREAT | O_WRONLY);
    const auto directory = open(dir_ / ".", O_DIRECTORY | O_RDONLY);
    const auto file = open(dir_ / "w", O_RDWR);
    EXPECT_EQ(result_of(io::read(-1, buf)), -EBADF);
    EXPECT_EQ(result_of(io::read(12345, buf, 0)), -EBADF);
    EXPECT_EQ(result_of(io::read(write_only, buf)), outcome(::read(write_only, buf, 4)));
    EXPECT_EQ(result_of(io::read(directory, buf)), outcome(::read(directory, buf, 4)));
    EXPECT_EQ(::write(file, "x", 1), 1);
    auto* const nowhere = reinterpret_cast<void*>(8);
    EXPECT_EQ(result_of(io::read(file, {nowhere, 4}, 0)), -EFAULT);
}

TEST_F(File, ErrorsOfWrite) {
    const auto read_only = open(dir_ / "r", O_CREAT | O_RDONLY);
    const auto full = open("/dev/full", O_WRONLY);
    coil_test::pipe_pair p;
    p.in.reset();
    EXPECT_EQ(result_of(io::write(-1, "x")), -EBADF);
    EXPECT_EQ(result_of(io::write(read_only, "x")), outcome(::write(read_only, "x", 1)));
    EXPECT_EQ(result_of(io::write(full, "x")), outcome(::write(full, "x", 1)));
    ::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(result_of(io::write(p.out, "x")), -EPIPE);
    ::signal(SIGPIPE, SIG_DFL);
}

TEST_F(File, ErrorsOfVectors) {
    const auto file = open(dir_ / "f", O_CREAT | O_RDWR);
    EXPECT_EQ(result_of(io::readv(-1, {})), -EBADF);
    EXPECT_EQ(result_of(io::writev(-1, {})), -EBADF);
    EXPECT_EQ(result_of(io::writev(file, {}, 0)), outcome(::writev(file, nullptr, 0)));
    const std::array<::iovec, 1> bad{{{reinterpret_cast<void*>(8), 4}}};
    EXPECT_EQ(result_of(io::writev(file, bad, 0)), outcome(::pwritev(file, bad.data(), 1, 0)));
}

TEST_F(File, ErrorsOfOpenat) {
    const auto file = open(dir_ / "f", O_CREAT | O_RDWR);
    auto same = [&](int dirfd, const std::filesystem::path& path, int flags) {
        EXPECT_EQ(result_of(io::openat(dirfd, path, flags, 0600)),
                  outcome(::openat(dirfd, path.c_str(), flags, 0600)))
            << path << ' ' << flags;
    };
    same(AT_FDCWD, dir_ / "missing", O_RDONLY);
    same(AT_FDCWD, dir_ / "f" / "below", O_RDONLY);
    same(AT_FDCWD, dir_ / "f", O_CREAT | O_EXCL | O_RDWR);
    same(AT_FDCWD, dir_ / ".", O_WRONLY);
    same(AT_FDCWD, "", O_RDONLY);
    same(AT_FDCWD, std::string(300, 'x'), O_RDONLY);
    same(AT_FDCWD, std::string(5000, 'x'), O_RDONLY);
    same(-1, "relative", O_RDONLY);
    same(file, "relative", O_RDONLY);
    EXPECT_EQ(result_of(io::openat(AT_FDCWD, static_cast<const char*>(nullptr), O_RDONLY)),
              -EFAULT);
}

TEST_F(File, ErrorsOfClose) {
    EXPECT_EQ(result_of(io::close(-1)), -EBADF);
    EXPECT_EQ(result_of(io::close(12345)), -EBADF);
}

TEST_F(File, ErrorsOfPoll) { EXPECT_EQ(result_of(io::poll(-1, POLLIN)), -EBADF); }

} // namespace
