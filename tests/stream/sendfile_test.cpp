// sendfile: sizes, offsets, the end of the file, errors, cancellation, descriptors.

#include "stream/support.hpp"
#include "support/descriptors.hpp"

#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <cerrno>
#include <csignal>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

namespace sim = coil::sim;

task<fs::file> file_with(std::string text) {
    fs::file file(::memfd_create("sendfile", MFD_CLOEXEC));
    EXPECT_EQ(co_await file.write_all_at(text, 0), static_cast<int>(text.size()));
    co_return file;
}

task<std::string> receive_all(net::socket& from) {
    std::string text;
    std::string buf(100'000, '\0');
    for (int n; (n = co_await from.recv(buf)) > 0;) {
        text.append(buf, 0, static_cast<std::size_t>(n));
    }
    co_return text;
}

task<int> send_and_end(net::socket& to, const fs::file& file, std::uint64_t offset,
                       std::size_t count) {
    const int n = co_await sendfile(to, file, offset, count);
    EXPECT_EQ(co_await to.shutdown_write(), 0);
    co_return n;
}

TEST(StreamSendfile, EverySizeAndOffset) {
    run([]() -> task<> {
        const std::string text = pattern(1'000'003);
        const fs::file file = co_await file_with(text);
        for (const std::size_t offset : {0, 1, 4096, 900'000, 1'000'003, 2'000'000}) {
            for (const std::size_t count : {0, 1, 65'536, 65'537, 500'000, 2'000'000}) {
                auto [a, b] = net::socket::pair();
                auto [sent, got] =
                    co_await when_all(send_and_end(a, file, offset, count), receive_all(b));
                const std::string expected =
                    offset < text.size() ? text.substr(offset, count) : std::string();
                EXPECT_EQ(sent, static_cast<int>(expected.size())) << offset << ' ' << count;
                EXPECT_TRUE(got == expected) << offset << ' ' << count;
            }
        }
    }());
}

TEST(StreamSendfile, WorksOverTcpWhileAReceiveWaits) {
    run([]() -> task<> {
        const std::string text = pattern(3'000'000);
        const fs::file file = co_await file_with(text);
        net::acceptor listener(net::inet_address("127.0.0.1", 0));
        net::socket one = net::socket::create_tcp();
        EXPECT_EQ(co_await one.connect(listener.local_address()), 0);
        net::socket other = co_await listener.accept();
        char buf[8];
        auto receiving = spawn([](net::socket& from, char(&into)[8]) -> task<int> {
            co_return co_await from.recv(into);
        }(one, buf));
        auto [sent, got] =
            co_await when_all(send_and_end(one, file, 0, text.size()), receive_all(other));
        EXPECT_EQ(sent, 3'000'000);
        EXPECT_TRUE(got == text);
        EXPECT_EQ(co_await other.send_all("thanks"), 6);
        EXPECT_EQ(co_await receiving, 6);
    }());
}

TEST(StreamSendfile, ASocketInNonBlockingMode) {
    run([]() -> task<> {
        const std::string text = pattern(5'000'000);
        const fs::file file = co_await file_with(text);
        auto [a, b] = net::socket::pair();
        EXPECT_NE(::fcntl(a.native_handle(), F_SETFL, O_RDWR | O_NONBLOCK), -1);
        auto [sent, got] = co_await when_all(send_and_end(a, file, 0, text.size()), receive_all(b));
        EXPECT_EQ(sent, 5'000'000);
        EXPECT_TRUE(got == text);
    }());
}

TEST(StreamSendfile, WhatSpliceRefusesIsReadAndSent) {
    run([]() -> task<> {
        // A file of /proc has no splice_read and no size.
        const fs::file file(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
        auto [a, b] = net::socket::pair();
        auto [sent, got] = co_await when_all(send_and_end(a, file, 0, 1 << 20), receive_all(b));
        EXPECT_GT(sent, 1000);
        EXPECT_EQ(got.size(), static_cast<std::size_t>(sent));
    }());
}

// Data that was read from a pipe could not be read again if sending it failed.
TEST(StreamSendfile, APipeAndASocketHaveNoOffsets) {
    run([]() -> task<> {
        for (const std::size_t count : {5, 1'000'000}) {
            auto [a, b] = net::socket::pair();
            auto [reader, writer] = make_pipe();
            EXPECT_EQ(co_await write_all(writer, "bytes"), 5);
            EXPECT_EQ(co_await sendfile(a, reader, 0, count), -ESPIPE) << count;
            char buf[8];
            EXPECT_EQ(co_await reader.read_some(buf), 5) << "nothing was consumed";
            EXPECT_EQ(co_await b.send_all("bytes"), 5);
            EXPECT_EQ(co_await sendfile(b, a, 0, count), -ESPIPE) << count;
            EXPECT_EQ(co_await a.recv(buf), 5);
        }
    }());
}

// Offsets from 2^63 on are negative for the kernel, where -1 means the file's position.
TEST(StreamSendfile, AnOffsetThatNoFileHasIsAnError) {
    run([]() -> task<> {
        const fs::file file = co_await file_with(pattern(1000));
        auto [a, b] = net::socket::pair();
        for (const std::uint64_t offset : {~0ULL, ~0ULL - 1, 1ULL << 63}) {
            for (const std::size_t count : {10, 1'000'000}) {
                EXPECT_EQ(co_await sendfile(a, file, offset, count), -EINVAL) << offset;
            }
        }
        EXPECT_EQ(::lseek(file.native_handle(), 0, SEEK_CUR), 0);
    }());
}

TEST(StreamSendfile, Errors) {
    run([]() -> task<> {
        const fs::file file = co_await file_with(pattern(1'000'000));
        const fs::file folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        for (const std::size_t count : {1000, 1'000'000}) {
            auto [a, b] = net::socket::pair();
            net::socket none;
            EXPECT_EQ(co_await sendfile(none, file, 0, count), -EBADF);
            EXPECT_EQ(co_await sendfile(a, fs::file(), 0, count), -EBADF);
            EXPECT_EQ(co_await sendfile(a, folder, 0, count), -EISDIR);
            b = {};
            EXPECT_EQ(co_await sendfile(a, file, 0, count), -EPIPE); // and no signal
        }
    }());
}

// The receiver does not read: the pipe is full when the task is cancelled. All bytes that the
// result counts as sent arrive, and the next call continues after them.
TEST(StreamSendfile, G3_ReturnsHowMuchWasSentIfCancelledInTheMiddle) {
    const std::set<int> before = coil_test::open_descriptors();
    run([]() -> task<> {
        const std::string text = pattern(8 << 20);
        const fs::file file = co_await file_with(text);
        auto [a, b] = net::socket::pair();
        auto sending = spawn([](net::socket& to, const fs::file& from) -> task<int> {
            co_return co_await sendfile(to, from, 0, 8 << 20);
        }(a, file));
        EXPECT_GE(co_await io::poll(b.native_handle(), POLLIN), 0); // the first bytes were sent
        sending.cancel();
        const int first = co_await sending;
        EXPECT_GT(first, 0);
        EXPECT_LT(first, 8 << 20);
        auto [rest, got] = co_await when_all(
            send_and_end(a, file, static_cast<std::uint64_t>(first), text.size()), receive_all(b));
        EXPECT_EQ(first + rest, 8 << 20);
        EXPECT_TRUE(got == text);
    }());
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST(StreamSendfile, G3_CancelledBeforeTheFirstByte) {
    run([]() -> task<> {
        const fs::file file = co_await file_with(pattern(1'000'000));
        auto [a, b] = net::socket::pair();
        while (co_await timeout(a.send(pattern(100'000)), 20ms) > 0) { // until it is full
        }
        for (const std::size_t count : {1000, 1'000'000}) {
            EXPECT_EQ(co_await timeout(sendfile(a, file, 0, count), 20ms), -ETIMEDOUT);
            auto sending = spawn(sendfile(a, file, 0, count));
            co_await sleep_for(5ms);
            sending.cancel();
            EXPECT_EQ(co_await sending, -ECANCELED) << count;
        }
    }());
}

TEST(StreamSendfile, InAWorldUnderAllFaults) {
    sim::for_each_seed(50, [](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::everything();
        sim::world w{seed, options};
        auto main = []() -> task<> {
            const std::string text = pattern(300'000);
            fs::file file;
            net::socket a;
            net::socket b;
            try {
                co_await fs::write_file("/data", text);
                file = co_await fs::file::open("/data");
                std::tie(a, b) = net::socket::pair();
            } catch (const std::system_error&) { // an injected fault
                co_return;
            }
            auto [sent, got] = co_await when_all(
                sendfile(a, file, 1, 299'000), [](net::socket from) -> task<std::string> {
                    std::string received;
                    char buf[5000];
                    for (int n;
                         (n = co_await timeout(from.recv(buf), 1s)) > 0 || n == -ECANCELED;) {
                        received.append(buf, n > 0 ? static_cast<std::size_t>(n) : 0);
                    }
                    co_return received;
                }(std::move(b)));
            if (sent >= 0) {
                EXPECT_TRUE(got == text.substr(1, static_cast<std::size_t>(int(sent))));
            }
        };
        auto done = w.host("host").spawn(main());
        EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1h));
    });
}

} // namespace
