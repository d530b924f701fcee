// readv_some, writev_some, writev_all: every stream, with and without vectored forms of its own.

#include "stream/support.hpp"
#include "support/run.hpp"

#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <algorithm>
#include <csignal>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

/// Like script_sink, with a vectored form that takes `step` bytes from several buffers.
class vectored_script_sink : public script_sink {
public:
    explicit vectored_script_sink(std::size_t step, int fails_at = -1, int error = -EPIPE)
        : script_sink(step, fails_at, error), step_(step), fails_at_(fails_at), error_(error) {}

    task<io_result> writev_some(std::span<const const_buffer> from) {
        most_buffers = std::max(most_buffers, from.size());
        if (vectored_calls_++ == fails_at_) {
            co_return io_result(error_);
        }
        std::size_t left = step_;
        for (const const_buffer& b : from) {
            const std::size_t n = std::min(left, b.size());
            text.append(static_cast<const char*>(b.data()), n);
            left -= n;
        }
        co_return io_result(static_cast<int>(step_ - left));
    }

    std::size_t most_buffers = 0;

private:
    std::size_t step_;
    int fails_at_;
    int error_;
    int vectored_calls_ = 0;
};

static_assert(vectored_source<net::socket> && vectored_sink<net::socket>);
static_assert(vectored_source<pipe_end&> && vectored_sink<pipe_end&>);
static_assert(vectored_source<fs::file> && vectored_sink<fs::file>);
static_assert(vectored_sink<vectored_script_sink> && !vectored_sink<script_sink>);
static_assert(!vectored_source<script_source>);

/// `count` buffers over `text`, of sizes 0, 1, 2, ... and the rest.
std::vector<const_buffer> cut(const std::string& text, std::size_t count) {
    std::vector<const_buffer> parts;
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t size = i + 1 == count ? text.size() - at : std::min(i, text.size() - at);
        parts.emplace_back(text.data() + at, size);
        at += size;
    }
    return parts;
}

template <class Sink>
task<> write_in_steps(std::size_t count, std::size_t step) {
    const std::string text = pattern(500);
    const std::vector<const_buffer> parts = cut(text, count);
    Sink sink(step);
    EXPECT_EQ(co_await writev_all(sink, parts), 500) << count << " buffers, " << step;
    EXPECT_EQ(sink.text, text) << count << " buffers, " << step;
    EXPECT_FALSE(sink.is_shut_down);
}

TEST(StreamVectored, EveryNumberOfBuffersInEverySizeOfSteps) {
    for (const std::size_t count : {1, 2, 3, 15, 16, 17, 18, 33, 60}) {
        for (const std::size_t step : {1, 2, 3, 7, 16, 100, 135, 136, 137, 499, 500, 1000}) {
            coil::run(write_in_steps<script_sink>(count, step));
            coil::run(write_in_steps<vectored_script_sink>(count, step));
        }
    }
}

TEST(StreamVectored, OneCallGetsSeveralBuffers) {
    coil::run([]() -> task<> {
        const std::string text = pattern(100);
        vectored_script_sink sink(1000);
        EXPECT_EQ(co_await writev_all(sink, cut(text, 5)), 100);
        EXPECT_EQ(sink.most_buffers, 4U); // without the empty one
    }());
}

TEST(StreamVectored, WithoutDataNoCallIsMade) {
    coil::run([]() -> task<> {
        vectored_script_sink sink(10, 0);
        const const_buffer empty[] = {{}, {}};
        EXPECT_EQ(co_await writev_all(sink, empty), 0);
        EXPECT_EQ(co_await writev_all(sink, {}), 0);
    }());
}

TEST(StreamVectored, AnErrorOfAnyCallIsReported) {
    const auto main = []<class Sink>(Sink sink) -> task<int> {
        const std::string text = pattern(10);
        const std::vector<const_buffer> parts = cut(text, 4); // of 0, 1, 2 and 7 bytes
        co_return co_await writev_all(sink, parts);
    };
    for (int call = 0; call < 4; ++call) {
        EXPECT_EQ(coil::run(main(vectored_script_sink(3, call, -ECONNRESET))), -ECONNRESET);
        EXPECT_EQ(coil::run(main(script_sink(3, call, -ECONNRESET))), -ECONNRESET);
    }
    EXPECT_EQ(coil::run(main(vectored_script_sink(3, 4))), 10); // four calls suffice
    EXPECT_EQ(coil::run(main(vectored_script_sink(0))), -EIO);  // it takes nothing
}

TEST(StreamVectored, WithoutAVectoredFormTheFirstNonEmptyBufferIsUsed) {
    coil::run([]() -> task<> {
        script_source source("abcdef");
        char first[2];
        char second[10];
        const mutable_buffer parts[] = {{}, first, second};
        EXPECT_EQ(co_await readv_some(source, parts), 2);
        EXPECT_EQ(std::string(first, 2), "ab");
        script_sink sink;
        const const_buffer out[] = {"", "ghi", "jkl"};
        EXPECT_EQ(co_await writev_some(sink, out), 3);
        EXPECT_EQ(sink.text, "ghi");
    }());
}

/// Reads to the end into three buffers at a time.
template <class Source>
task<std::string> read_to_the_end(Source& from) {
    std::string text;
    for (;;) {
        char a[3];
        char b[70];
        char c[1000];
        const mutable_buffer parts[] = {a, {}, b, c};
        const int n = co_await readv_some(from, parts);
        EXPECT_GE(n, 0);
        if (n <= 0) {
            co_return text;
        }
        auto left = static_cast<std::size_t>(n);
        for (const mutable_buffer& part : parts) {
            const std::size_t here = std::min(left, part.size());
            text.append(static_cast<const char*>(part.data()), here);
            left -= here;
        }
    }
}

template <class Sink>
task<> write_and_end(Sink& to, const std::string& text) {
    EXPECT_EQ(co_await writev_all(to, cut(text, 50)), static_cast<int>(text.size()));
    EXPECT_EQ(co_await to.shutdown_write(), 0);
}

template <class Sink, class Source>
task<bool> passes_through(Sink to, Source from, std::size_t size) {
    const std::string text = pattern(size);
    const auto [got, ignored] = co_await when_all(read_to_the_end(from), write_and_end(to, text));
    static_cast<void>(ignored);
    co_return got == text;
}

// More than the kernel's buffers hold, so that writes are short and wait.
constexpr std::size_t beyond_buffers = 1'500'000;

TEST(StreamVectored, ThroughSocketsAndPipes) {
    auto [a, b] = net::socket::pair();
    EXPECT_TRUE(coil::run(passes_through(std::move(a), std::move(b), beyond_buffers)));
    auto [reader, writer] = make_pipe();
    EXPECT_TRUE(coil::run(passes_through(std::move(writer), std::move(reader), beyond_buffers)));
}

TEST(StreamVectored, AFileIsUsedAtItsPosition) {
    coil::run([]() -> task<> {
        const std::string text = pattern(100'000);
        fs::file f(::memfd_create("vectored", MFD_CLOEXEC));
        EXPECT_EQ(co_await f.write("head"), 4);
        EXPECT_EQ(co_await writev_all(f, cut(text, 40)), 100'000);
        EXPECT_EQ(co_await f.write("tail"), 4);
        EXPECT_EQ(::lseek(f.native_handle(), 0, SEEK_SET), 0);
        EXPECT_EQ(co_await read_to_the_end(f), "head" + text + "tail");
    }());
}

/// A short write through the ring does not advance the position.
TEST(StreamVectored, AfterAShortWriteToAFileTheNextOneContinues) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer's threads do not survive a fork";
    }
    const std::string complaint = coil_test::in_child([]() -> std::string {
        ::signal(SIGXFSZ, SIG_IGN);
        ::rlimit limit{65536, RLIM_INFINITY};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        return coil::run([](::rlimit l) -> task<std::string> {
            const std::string text = pattern(100'000);
            fs::file f(::memfd_create("short", MFD_CLOEXEC));
            if (const int n = co_await writev_all(f, cut(text, 10)); n != -EFBIG) {
                co_return "written: " + std::to_string(n);
            }
            l.rlim_cur = RLIM_INFINITY;
            ::setrlimit(RLIMIT_FSIZE, &l);
            const std::string rest = text.substr(65536);
            const int n = co_await writev_all(f, cut(rest, 10));
            ::lseek(f.native_handle(), 0, SEEK_SET);
            const std::string all = co_await read_to_the_end(f);
            co_return n == static_cast<int>(rest.size()) && all == text ? "" : "other data";
        }(limit));
    });
    EXPECT_EQ(complaint, "");
}

TEST(StreamVectored, OfAFileInASimulatedWorldWithShortTransfers) {
    const std::string text = pattern(30'000);
    sim::for_each_seed(20, [&](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::timing();
        sim::world w{seed, options};
        auto done = w.host("h").spawn([](const std::string& text) -> task<bool> {
            fs::file f = co_await fs::file::open("/f", O_RDWR | O_CREAT);
            EXPECT_EQ(co_await writev_all(f, cut(text, 40)), static_cast<int>(text.size()));
            fs::file again = co_await fs::file::open("/f");
            co_return co_await read_to_the_end(again) == text;
        }(text));
        w.run();
        EXPECT_TRUE(done.done() && done.get());
    });
}

TEST(StreamVectored, AClosedPeerIsAnErrorAndNotASignal) {
    coil::run([]() -> task<> {
        auto [a, b] = net::socket::pair();
        EXPECT_EQ(co_await b.close(), 0);
        const const_buffer parts[] = {"one", "two"};
        EXPECT_EQ(co_await a.writev_some(parts), -EPIPE);
        EXPECT_EQ(co_await net::socket().writev_some(parts), -EBADF);
        char buf[3];
        const mutable_buffer into[] = {buf};
        EXPECT_EQ(co_await a.readv_some(into), 0);
        EXPECT_EQ(co_await pipe_end().readv_some(into), -EBADF);
    }());
}

TEST(StreamVectored, G3_AReadIsCancelledByATimeout) {
    coil::run([]() -> task<> {
        auto [a, b] = net::socket::pair();
        auto [reader, writer] = make_pipe();
        char one[3];
        char two[3];
        const mutable_buffer parts[] = {one, two};
        EXPECT_EQ(co_await timeout(a.readv_some(parts), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(reader.readv_some(parts), 1ms), -ETIMEDOUT);
        // The streams are usable afterwards.
        EXPECT_EQ(co_await b.send_all("abcdef"), 6);
        EXPECT_EQ(co_await a.readv_some(parts), 6);
        EXPECT_EQ(std::string(one, 3) + std::string(two, 3), "abcdef");
    }());
}

// The operation copies the list of buffers: the caller's list may be destroyed before the await.
TEST(StreamVectored, G2_TheListMayEndBeforeTheOperation) {
    coil::run([]() -> task<> {
        auto [a, b] = net::socket::pair();
        const auto start = [](net::socket& s) {
            const const_buffer parts[] = {"abc", "def"};
            return s.writev_some(parts);
        };
        EXPECT_EQ(co_await start(a), 6);
        char buf[6];
        EXPECT_EQ(co_await b.recv_all(buf), 6);
        EXPECT_EQ(std::string(buf, 6), "abcdef");
    }());
}

task<> serve_one(std::string& got) {
    net::acceptor ac{net::inet_address(80)};
    net::socket peer = co_await ac.accept();
    got = co_await read_to_the_end(peer);
}

task<bool> send_one(net::inet_address to, const std::string& text) {
    net::socket s = net::socket::create_tcp();
    EXPECT_EQ(co_await s.connect(to), 0);
    co_await write_and_end(s, text);
    co_return true;
}

TEST(StreamVectored, InASimulatedWorldWithShortTransfers) {
    const std::string text = pattern(30'000);
    sim::for_each_seed(20, [&](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::timing();
        std::string got;
        sim::world w{seed, options};
        w.host("server").co_spawn(serve_one(got));
        w.run();
        auto sent = w.host("client").spawn(send_one(w.host("server").address(80), text));
        EXPECT_TRUE(w.run_until([&] { return sent.done() && got.size() == text.size(); }, 1h));
        EXPECT_TRUE(got == text);
    });
}

} // namespace
