#include "files.hpp"
#include "support/descriptors.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

// A write to a pipe, a socket or a terminal from which nothing is read waits indefinitely, but it
// can be cancelled like any other operation and occupies no thread.

namespace {

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::pattern;
using coil_test::scratch;

/// More than a pipe, a socket or a terminal holds.
constexpr std::size_t too_much = 8U << 20;

task<> write_named(fs::path p, const std::string& text, std::error_code& ec) {
    co_await fs::write_file(p, text, {.mode = fs::write_mode::append}, ec);
}

task<> write_opened(int fd, const std::string& text, std::error_code& ec) {
    fs::file out(fd);
    const io_result r = co_await out.write_all(text);
    ec = r.error();
    static_cast<void>(out.release());
}

task<> after_a_moment(auto f) {
    co_await sleep_for(30ms);
    f();
}

/// Ends a task that `start` creates, once by cancellation and once by destruction.
void can_be_ended(auto start) {
    {
        io_context context;
        inplace_stop_source stop;
        std::error_code ec;
        context.co_spawn(start(ec), stop.get_token());
        context.co_spawn(after_a_moment([&] { stop.request_stop(); }));
        context.run();
        EXPECT_EQ(ec, std::errc::operation_canceled);
    }
    io_context context;
    std::error_code ec;
    context.co_spawn(start(ec));
    context.co_spawn(after_a_moment([&] { context.stop(); }));
    context.run();
}

TEST(G3_FsUnread, AWriteFileToAFifoWithoutAReaderCanBeEnded) {
    const scratch dir;
    const fs::path fifo = dir / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const descriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    const std::string text = pattern(too_much);
    can_be_ended([&](std::error_code& ec) { return write_named(fifo, text, ec); });
}

TEST(G3_FsUnread, AWriteAllWithoutAReaderCanBeEnded) {
    const std::string text = pattern(too_much);
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    const descriptor pipe_in(pipe[0]);
    const descriptor pipe_out(pipe[1]);
    can_be_ended([&](std::error_code& ec) { return write_opened(pipe_out, text, ec); });

    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const descriptor here(pair[0]);
    const descriptor there(pair[1]);
    can_be_ended([&](std::error_code& ec) { return write_opened(here, text, ec); });

    const descriptor terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) {
        GTEST_SKIP() << "no terminals available";
    }
    char name[128];
    ASSERT_EQ(::ptsname_r(terminal, name, sizeof name), 0);
    const descriptor screen(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_GE(screen, 0);
    can_be_ended([&](std::error_code& ec) { return write_opened(screen, text, ec); });
}

/// Reads until the writer is done.
task<> read_slowly(int fd, std::string& got, std::size_t size) {
    char buf[50'000];
    while (got.size() < size) {
        const int n = co_await io::read(fd, buf);
        if (n <= 0) {
            break;
        }
        got.append(buf, static_cast<std::size_t>(n));
    }
}

TEST(FsUnread, EverythingWrittenIsRead) {
    const scratch dir;
    const fs::path fifo = dir / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const descriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    // Without another writer, the pipe would end between the two writes.
    const descriptor open_end(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
    const std::string text = pattern(too_much + 12'345);
    for (const bool named : {true, false}) {
        std::string got;
        std::error_code ec = std::make_error_code(std::errc::interrupted);
        io_context context;
        context.co_spawn(named ? write_named(fifo, text, ec) : write_opened(open_end, text, ec));
        context.co_spawn(read_slowly(reader, got, text.size()));
        context.run();
        EXPECT_FALSE(ec) << ec.message();
        EXPECT_EQ(got == text, true);
    }
}

} // namespace
