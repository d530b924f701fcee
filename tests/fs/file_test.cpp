#include "files.hpp"
#include "support/descriptors.hpp"

#include <cerrno>
#include <climits>
#include <csignal>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace coil;
using coil_test::pattern;
using coil_test::scratch;

static_assert(!std::is_copy_constructible_v<fs::file>);
static_assert(std::is_nothrow_move_constructible_v<fs::file>);

task<> written_and_read(const scratch& dir) {
    const fs::path name = dir / "notes";
    fs::file f = co_await fs::file::open(name, O_RDWR | O_CREAT, 0640);
    EXPECT_TRUE(f.is_open());
    EXPECT_EQ(::fcntl(f.native_handle(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);

    int n = co_await f.write_all("hello, world");
    EXPECT_EQ(n, 12);
    n = co_await f.write_at("J", 0);
    EXPECT_EQ(n, 1);
    const std::uintmax_t size = co_await f.size();
    EXPECT_EQ(size, 12U);

    char buf[32];
    n = co_await f.read(buf);
    EXPECT_EQ(n, 0); // the position is after the written data; write_at() does not move it
    n = co_await f.read_at({buf, 5}, 7);
    EXPECT_EQ(std::string_view(buf, 5), "world");
    n = co_await f.read_exact_at({buf, 12}, 0);
    EXPECT_EQ(n, 12);
    EXPECT_EQ(std::string_view(buf, 12), "Jello, world");
    n = co_await f.write_all_at("!", 12);
    EXPECT_EQ(n, 1);

    n = co_await f.resize(5);
    EXPECT_EQ(n, 0);
    n = co_await f.sync();
    EXPECT_EQ(n, 0);
    n = co_await f.data_sync();
    EXPECT_EQ(n, 0);
    n = co_await f.close();
    EXPECT_EQ(n, 0);
    EXPECT_FALSE(f);
    EXPECT_EQ(coil_test::content_of(name), "Jello");
    n = co_await f.close();
    EXPECT_EQ(n, -EBADF);
}

TEST(FsFile, IsWrittenAndRead) {
    const scratch dir;
    coil::run(written_and_read(dir));
}

task<> exact(const scratch& dir) {
    const std::string text = pattern(3'000'000);
    coil_test::put(dir / "a", text);
    fs::file f = co_await fs::file::open(dir / "a");
    std::string got(1'999'999, '\0');
    int n = co_await f.read_exact(got);
    EXPECT_EQ(n, 1'999'999);
    EXPECT_EQ(got, text.substr(0, got.size()));
    got.resize(1'000'001);
    n = co_await f.read_exact(got);
    EXPECT_EQ(n, 1'000'001);
    EXPECT_EQ(got, text.substr(1'999'999));
    n = co_await f.read_exact(got);
    EXPECT_EQ(n, -ENODATA);
    n = co_await f.read_exact_at(got, 2'000'000);
    EXPECT_EQ(n, -ENODATA); // one byte is missing
    n = co_await f.read_exact(mutable_buffer());
    EXPECT_EQ(n, 0);

    fs::file out = co_await fs::file::open(dir / "b", O_WRONLY | O_CREAT);
    n = co_await out.write_all(text);
    EXPECT_EQ(n, 3'000'000);
    n = co_await out.write_all_at(text, 3'000'000);
    EXPECT_EQ(n, 3'000'000);
    EXPECT_EQ(coil_test::content_of(dir / "b"), text + text);
}

TEST(FsFile, ReadsAndWritesExactlyWhatWasAsked) {
    const scratch dir;
    coil::run(exact(dir));
}

task<> bad_places(const scratch& dir) {
    coil_test::put(dir / "a", "abc");
    fs::file f = co_await fs::file::open(dir / "a", O_RDWR);
    char c = 0;
    for (const ::off_t offset : {::off_t{-1}, ::off_t{-2}, ::off_t{LONG_MIN}}) {
        int n = co_await f.read_at({&c, 1}, offset);
        EXPECT_EQ(n, -EINVAL) << offset;
        n = co_await f.write_at("x", offset);
        EXPECT_EQ(n, -EINVAL) << offset;
        n = co_await f.read_exact_at({&c, 1}, offset);
        EXPECT_EQ(n, -EINVAL) << offset;
    }
    EXPECT_EQ(coil_test::content_of(dir / "a"), "abc");
}

TEST(FsFile, ANegativeOffsetIsAnError) {
    const scratch dir;
    coil::run(bad_places(dir));
}

task<> refused(const scratch& dir) {
    std::error_code ec;
    fs::file f = co_await fs::file::open(dir / "none", O_RDONLY, ec);
    EXPECT_EQ(ec, std::errc::no_such_file_or_directory);
    EXPECT_EQ(ec.category(), std::generic_category());
    EXPECT_FALSE(f);
    try {
        f = co_await fs::file::open(dir / "none");
        ADD_FAILURE() << "a missing file was opened";
    } catch (const fs::filesystem_error& e) {
        EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
        EXPECT_EQ(e.path1(), dir / "none");
    }
    f = co_await fs::file::open(dir / "new", O_WRONLY | O_CREAT | O_EXCL, 0600, ec);
    EXPECT_FALSE(ec);
    EXPECT_TRUE(f);
    fs::file again = co_await fs::file::open(dir / "new", O_WRONLY | O_CREAT | O_EXCL, 0600, ec);
    EXPECT_EQ(ec, std::errc::file_exists);
    char c = 0;
    int n = co_await f.read({&c, 1});
    EXPECT_EQ(n, -EBADF); // it is open for writing only
}

TEST(FsFile, ErrorsAreThoseOfOpen) {
    const scratch dir;
    coil::run(refused(dir));
}

task<> empty_object() {
    fs::file f;
    char c = 0;
    int n = co_await f.read({&c, 1});
    EXPECT_EQ(n, -EBADF);
    n = co_await f.write_all({&c, 1});
    EXPECT_EQ(n, -EBADF);
    n = co_await f.resize(0);
    EXPECT_EQ(n, -EBADF);
    std::error_code ec;
    const std::uintmax_t size = co_await f.size(ec);
    EXPECT_EQ(size, static_cast<std::uintmax_t>(-1));
    EXPECT_EQ(ec, std::errc::bad_file_descriptor);
    EXPECT_EQ(f.native_handle(), -1);
}

TEST(FsFile, AnEmptyFileObjectGivesEBADF) { coil::run(empty_object()); }

task<> moved(const scratch& dir) {
    coil_test::put(dir / "a", "a");
    fs::file a = co_await fs::file::open(dir / "a");
    const int fd = a.native_handle();
    fs::file b = std::move(a);
    EXPECT_FALSE(a); // NOLINT(bugprone-use-after-move): the moved-from state is tested
    EXPECT_EQ(b.native_handle(), fd);
    coil_test::put(dir / "other", "");
    fs::file c = co_await fs::file::open(dir / "other");
    const coil_test::open_file other(c.native_handle());
    c = std::move(b);
    EXPECT_FALSE(other.is_open());
    EXPECT_EQ(c.release(), fd);
    EXPECT_FALSE(c); // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(coil_test::is_open(fd));
    const fs::file closing(fd);
}

TEST(FsFile, G4_OwnsItsDescriptor) {
    const scratch dir;
    coil::run(moved(dir));
}

task<> open_for_writing(fs::path p, int& opened) {
    fs::file f = co_await fs::file::open(p, O_WRONLY);
    opened = 1;
    const int n = co_await f.write_all("through a fifo");
    EXPECT_EQ(n, 14);
}

task<> fifo_both_ways(const scratch& dir) {
    const fs::path name = dir / "fifo";
    EXPECT_EQ(::mkfifo(name.c_str(), 0600), 0);
    struct ::stat cached{};
    EXPECT_EQ(::stat(name.c_str(), &cached), 0);
    int opened = 0;
    join_handle<void> writer = spawn(open_for_writing(name, opened));
    co_await sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(opened, 0); // no reader
    const std::string got = co_await fs::read_file(name);
    EXPECT_EQ(got, "through a fifo");
    co_await writer;
}

TEST(FsFile, AFifoIsWaitedForAsOpenDoes) {
    const scratch dir;
    coil::run(fifo_both_ways(dir));
}

task<> open_alone(fs::path p, std::error_code& ec) {
    const fs::file f = co_await fs::file::open(std::move(p), O_WRONLY, ec);
}

TEST(FsFile, G3_WaitingForAReaderIsCancelled) {
    const scratch dir;
    ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
    io_context context;
    std::error_code ec;
    inplace_stop_source stop;
    context.co_spawn(open_alone(dir / "fifo", ec), stop.get_token());
    context.co_spawn([](inplace_stop_source& s) -> task<> {
        co_await sleep_for(std::chrono::milliseconds(5));
        s.request_stop();
    }(stop));
    context.run();
    EXPECT_EQ(ec, std::errc::operation_canceled);
}

/// A short write through the ring does not advance the position.
TEST(FsFile, AfterAShortWriteTheNextOneContinuesWhereItEnded) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer's threads do not survive a fork";
    }
    const scratch dir;
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        ::signal(SIGXFSZ, SIG_IGN);
        ::rlimit limit{65536, RLIM_INFINITY};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        return coil::run([](fs::path name, ::rlimit l) -> task<std::string> {
            fs::file f = co_await fs::file::open(name, O_RDWR | O_CREAT);
            const std::string data(100'000, 'x');
            int n = co_await f.write_all(data);
            if (n != -EFBIG) {
                co_return "written: " + std::to_string(n);
            }
            const ::off_t end = ::lseek(f.native_handle(), 0, SEEK_CUR);
            if (end != 65536) {
                co_return "the position is " + std::to_string(end);
            }
            l.rlim_cur = RLIM_INFINITY;
            ::setrlimit(RLIMIT_FSIZE, &l);
            n = co_await f.write_all("the end");
            const std::string all = co_await fs::read_file(name);
            co_return n == 7 && all == std::string(65536, 'x') + "the end" ? ""
                                                                           : "it was overwritten";
        }(dir / "f", limit));
    });
    EXPECT_EQ(complaint, "");
}

} // namespace
