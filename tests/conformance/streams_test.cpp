// Multishot streams, buffer pools, direct descriptors and registered buffers on every backend.

#include "conformance/support.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include <poll.h>

namespace conformance {

namespace {

class Streams : public Conformance {};
COIL_ON_ALL_BACKENDS(Streams);

task<> accepts() {
    const int listener = co_await listening();
    const address at = name_of(listener);
    auto incoming = io::accept_multishot(listener, SOCK_CLOEXEC);
    for (int i = 0; i < 5; ++i) {
        const int client = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
        co_await gives(io::connect(client, at.get(), at.length), 0);
        const auto accepted = co_await incoming.next();
        EXPECT_TRUE(accepted.has_value());
        co_await gives(io::send(*accepted, "hi"), 2);
        char buf[4];
        co_await gives(io::recv(client, {buf, 2}, MSG_WAITALL), 2);
        co_await gives(io::close(client), 0);
        co_await gives(io::close(*accepted), 0);
    }
    co_await gives(io::close(listener), 0);
}
TEST_P(Streams, Accept) { run(accepts()); }

task<> receives(bool incremental) {
    const ends s = co_await connected();
    coil::buffer_pool_options options;
    options.buffers = 4;
    options.buffer_size = 64;
    options.incremental = incremental;
    coil::buffer_pool pool(options);
    std::string sent;
    std::string got;
    {
        auto incoming = io::recv_multishot(s.b, pool);
        for (int i = 0; i < 40; ++i) {
            const std::string piece(static_cast<std::size_t>(1 + i * 7 % 50),
                                    static_cast<char>('a' + i % 26));
            sent += piece;
            co_await gives(io::send(s.a, piece, MSG_WAITALL), static_cast<long>(piece.size()));
            if (i % 4 == 3) {
                while (got.size() < sent.size()) {
                    auto chunk = co_await incoming.next();
                    EXPECT_TRUE(chunk) << chunk.result();
                    if (!chunk) {
                        co_return;
                    }
                    got += chunk->text();
                }
            }
        }
        co_await gives(io::shutdown(s.a, SHUT_WR), 0);
        const auto last = co_await incoming.next();
        EXPECT_FALSE(last);
        EXPECT_EQ(static_cast<int>(last.result()), 0);
    }
    EXPECT_EQ(got, sent);
    EXPECT_EQ(pool.available(), pool.size()); // every buffer came back
    co_await closed(s);
}
TEST_P(Streams, G2_Receive) { run(receives(false)); }
TEST_P(Streams, G2_ReceiveIntoSharedBuffers) { run(receives(true)); }

task<> starves() {
    const ends s = co_await connected();
    coil::buffer_pool_options options;
    options.buffers = 2;
    options.buffer_size = 64;
    options.incremental = false;
    coil::buffer_pool pool(options);
    const std::string data(64 * 6, 'x');
    co_await gives(io::send(s.a, data, MSG_WAITALL), static_cast<long>(data.size()));
    auto incoming = io::recv_multishot(s.b, pool);
    std::size_t got = 0;
    {
        auto first = co_await incoming.next();
        auto second = co_await incoming.next();
        EXPECT_TRUE(first && second);
        got = first->bytes().size() + second->bytes().size();
        EXPECT_EQ(pool.available(), 0U);
        const auto none = co_await timeout(incoming.next(), 2ms);
        EXPECT_FALSE(none); // there is no buffer
    }
    while (got < data.size()) { // the buffers were returned
        auto chunk = co_await incoming.next();
        EXPECT_TRUE(chunk) << chunk.result();
        if (!chunk) {
            break;
        }
        got += chunk->bytes().size();
    }
    EXPECT_EQ(got, data.size());
    co_await closed(s);
}
TEST_P(Streams, AStreamWithoutBuffersWaits) { run(starves()); }

task<> pipe_stream() {
    const ends p = co_await piped();
    coil::buffer_pool pool(4, 64);
    auto incoming = io::read_multishot(p.a, pool);
    for (const std::string_view piece : {"one", "two", "three"}) {
        co_await gives(io::write(p.b, piece), static_cast<long>(piece.size()));
        auto chunk = co_await incoming.next();
        EXPECT_EQ(chunk->text(), piece);
    }
    co_await gives(io::close(p.b), 0);
    const auto last = co_await incoming.next();
    EXPECT_FALSE(last);
    co_await gives(io::close(p.a), 0);
}
TEST_P(Streams, ReadAPipe) { run(pipe_stream()); }

task<> ticks() {
    const std::int64_t begin = now_ns();
    auto ticking = io::timeout_multishot(2ms);
    int seen = 0;
    while (seen < 5) {
        const auto tick = co_await ticking.next();
        EXPECT_TRUE(tick.has_value());
        seen += *tick;
    }
    EXPECT_GE(now_ns() - begin, 10'000'000);
}
TEST_P(Streams, Ticks) { run(ticks()); }

task<> poll_stream() {
    const ends p = co_await piped();
    char buf[4];
    auto events = io::poll_multishot(p.a, POLLIN);
    for (int i = 0; i < 3; ++i) {
        co_await gives(io::write(p.b, "x"), 1);
        const auto event = co_await events.next();
        EXPECT_TRUE(event.has_value());
        EXPECT_EQ(*event & POLLIN, POLLIN);
        co_await gives(io::read(p.a, buf), 1);
    }
    co_await closed(p);
}
TEST_P(Streams, Polls) { run(poll_stream()); }

task<> direct(std::string directory) {
    const std::string name = directory + "f";
    const auto file = co_await io::openat_direct(AT_FDCWD, name, O_RDWR | O_CREAT, 0600);
    EXPECT_GE(file, 0);
    char buf[8] = {};
    co_await gives(io::write(file, "direct", 0), 6);
    co_await gives(io::read(file, buf, 2), 4);
    EXPECT_EQ(text(buf, 4), "rect");
    co_await gives(io::fsync(file), 0);
    const int plain = co_await io::fixed_fd_install(file);
    EXPECT_GE(plain, 0);
    co_await gives(io::close(file), 0);
    co_await gives(io::read(file, buf, 0), -EBADF);
    co_await gives(io::read(plain, buf, 0), 6, "the file lives on");

    const ends p = co_await piped();
    const auto reader = co_await io::register_file(p.a);
    EXPECT_GE(reader, 0);
    co_await gives(io::close(p.a), 0);
    co_await gives(io::write(p.b, "x"), 1);
    co_await gives(io::read(reader, buf), 1, "the table's is open");
    auto waiting = coil::eager(io::read(reader, buf));
    co_await coil::yield();
    co_await gives(io::write(p.b, "yz"), 2);
    const int r = co_await waiting;
    EXPECT_EQ(r, 2);
    co_await gives(io::close_direct(reader), 0);
    co_await gives(io::write(p.b, "x"), -EPIPE, "the last reader has gone");
    co_await gives(io::close(p.b), 0);
    co_await gives(io::close(plain), 0);
}
TEST_P(Streams, DirectDescriptors) { run(direct(directory())); }

task<> fixed(std::string directory) {
    const int fd = co_await io::open(directory + "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char memory[64] = "0123456789";
    const io::registered_buffers registered{coil::mutable_buffer(memory, 64)};
    co_await gives(io::write_fixed(fd, registered[0].first(10), 0), 10);
    std::fill(std::begin(memory), std::end(memory), '\0');
    co_await gives(io::read_fixed(fd, registered[0], 2), 8);
    EXPECT_EQ(text(memory, 8), "23456789");
    co_await gives(io::close(fd), 0);
}
TEST_P(Streams, RegisteredBuffers) { run(fixed(directory())); }

} // namespace

} // namespace conformance
