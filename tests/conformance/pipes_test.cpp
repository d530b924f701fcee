// Pipes on every backend: transfers, end of file, splice, tee, multishot reads.

#include "conformance/support.hpp"

#include <poll.h>

namespace conformance {

namespace {

class Pipes : public Conformance {};
COIL_ON_ALL_BACKENDS(Pipes);

task<> transfers() {
    const ends p = co_await piped();
    char buf[16] = {};
    co_await gives(io::write(p.b, "0123456789"), 10);
    co_await gives(io::read(p.a, {buf, 4}), 4);
    co_await gives(io::read(p.a, buf), 6, "as much as there is");
    EXPECT_EQ(text(buf, 6), "456789");
    co_await gives(coil::timeout(io::read(p.a, buf), 2ms), -ETIMEDOUT);
    co_await gives(io::write(p.b, "x", 5), 1, "a ring has no positions for a pipe");
    co_await gives(io::read(p.a, buf, 7), 1);
    co_await gives(io::write(p.a, "x"), -EBADF, "the reader's end");
    co_await gives(io::read(p.b, buf), -EBADF, "the writer's end");
    auto waiting = coil::eager(io::read(p.a, buf));
    co_await coil::yield();
    co_await gives(io::write(p.b, "wakes"), 5);
    const int n = co_await waiting;
    EXPECT_EQ(text(buf, n), "wakes");
    co_await closed(p);
}
TEST_P(Pipes, Transfers) { run(transfers()); }

task<> pipe_ends() {
    const ends p = co_await piped();
    char buf[16];
    co_await gives(io::write(p.b, "last"), 4);
    auto close_later = coil::eager(io::close(p.b));
    const int r = co_await close_later;
    EXPECT_EQ(r, 0);
    co_await gives(io::read(p.a, buf), 4);
    co_await gives(io::read(p.a, buf), 0);
    co_await gives(io::poll(p.a, POLLIN), POLLHUP);
    co_await gives(io::close(p.a), 0);

    const ends q = co_await piped();
    auto waiting = coil::eager(io::read(q.a, buf));
    co_await coil::yield();
    co_await gives(io::close(q.b), 0);
    const int end = co_await waiting;
    EXPECT_EQ(end, 0); // a waiting reader sees the end
    co_await gives(io::close(q.a), 0);

    const ends full = co_await piped();
    co_await gives(io::close(full.a), 0);
    co_await gives(io::write(full.b, "x"), -EPIPE);
    co_await gives(io::close(full.b), 0);
}
TEST_P(Pipes, End) { run(pipe_ends()); }

task<> back_pressure() {
    const ends p = co_await piped(O_NONBLOCK);
    const std::string data(1U << 20, 'x');
    const int room = co_await io::write(p.b, data);
    EXPECT_GE(room, 4096);
    EXPECT_LT(room, 1 << 20);
    co_await gives(coil::timeout(io::write(p.b, "x"), 2ms), -ETIMEDOUT,
                   "a ring waits despite O_NONBLOCK");
    std::string got(data.size(), '\0');
    co_await gives(io::read(p.a, got), room);
    co_await gives(coil::timeout(io::read(p.a, got), 2ms), -ETIMEDOUT);
    co_await closed(p);

    const ends q = co_await piped();
    co_await gives(io::write(q.b, {data.data(), static_cast<std::size_t>(room) + 10}), room,
                   "as much as fits");
    auto waiting = coil::eager(io::write(q.b, "waits"));
    co_await coil::yield();
    co_await gives(io::read(q.a, got), room);
    const int written = co_await waiting;
    EXPECT_EQ(written, 5);
    co_await gives(io::read(q.a, got), 5);
    co_await closed(q);
}
TEST_P(Pipes, BackPressure) { run(back_pressure()); }

task<> splices() {
    const ends p = co_await piped();
    const ends q = co_await piped();
    char buf[16] = {};
    co_await gives(io::write(p.b, "0123456789"), 10);
    co_await gives(io::tee(p.a, q.b, 4), 4);
    co_await gives(io::read(q.a, buf), 4);
    EXPECT_EQ(text(buf, 4), "0123");
    co_await gives(io::splice(p.a, nullptr, q.b, nullptr, 6), 6);
    co_await gives(io::read(q.a, buf), 6);
    EXPECT_EQ(text(buf, 6), "012345");
    co_await gives(io::splice(p.a, nullptr, q.b, nullptr, 100), 4, "as much as there is");
    co_await gives(io::tee(p.a, q.b, 4, SPLICE_F_NONBLOCK), -EAGAIN);
    co_await gives(io::read(q.a, buf), 4);
    co_await gives(io::splice(-1, nullptr, q.b, nullptr, 4), -EBADF);
    co_await closed(p);
    co_await closed(q);
}
TEST_P(Pipes, SpliceAndTee) { run(splices()); }

task<> splice_with_files(std::string directory) {
    const ends p = co_await piped();
    const int fd = co_await io::open(directory + "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char buf[16] = {};
    co_await gives(io::write(fd, "0123456789", 0), 10);
    ::off64_t from = 2;
    co_await gives(io::splice(fd, &from, p.b, nullptr, 5), 5);
    co_await gives(io::read(p.a, buf), 5);
    EXPECT_EQ(text(buf, 5), "23456");
    co_await gives(io::write(p.b, "abc"), 3);
    ::off64_t to = 10;
    co_await gives(io::splice(p.a, nullptr, fd, &to, 3), 3);
    co_await gives(io::read(fd, buf, 8), 5);
    EXPECT_EQ(text(buf, 5), "89abc");
    co_await gives(io::close(fd), 0);
    co_await closed(p);
}
TEST_P(Pipes, SpliceWithFiles) { run(splice_with_files(directory())); }

} // namespace

} // namespace conformance
