// flush_before_read: when it flushes, every failure once, partial requests, cancellation.

#include "stream/support.hpp"

#include <string>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

static_assert(byte_source<flush_before_read<net::socket&, net::socket&>>);
static_assert(byte_source<flush_before_read<script_source, script_sink&>>);

/// Answers each line with itself, and flushes only by means of the reader.
template <class Source, class Sink>
task<> echo_lines(Source& from, Sink& to, std::size_t capacity) {
    buffered_writer out{to, capacity};
    buffered_reader in{flush_before_read{from, out}, capacity};
    auto lines = in.lines();
    while (auto line = co_await lines.next()) {
        EXPECT_EQ(co_await out.write(*line), static_cast<int>(line->size()));
        EXPECT_EQ(co_await out.write("\n"), 1);
    }
    EXPECT_EQ(out.pending(), 0U); // the read that found the end has flushed everything
}

TEST(FlushBeforeRead, OneFlushForAllRequestsOfARead) {
    auto main = []() -> task<> {
        script_source source("a\nb\nc\nd\ne\nf\n", 6); // three lines in each read
        script_sink sink;
        co_await echo_lines(source, sink, 4096);
        EXPECT_EQ(sink.text, "a\nb\nc\nd\ne\nf\n");
        EXPECT_EQ(sink.calls(), 2);
        EXPECT_EQ(source.calls(), 3);
    };
    coil::run(main());
}

TEST(FlushBeforeRead, PiecesOfEverySize) {
    auto main = [](std::size_t read_step, std::size_t write_step, std::size_t capacity) -> task<> {
        const std::string text = "one\n\nthree\nfour and more\n5\n";
        script_source source(text, read_step);
        script_sink sink(write_step);
        co_await echo_lines(source, sink, capacity);
        EXPECT_EQ(sink.text, text) << read_step << ' ' << write_step << ' ' << capacity;
    };
    for (std::size_t read_step = 1; read_step <= 28; ++read_step) {
        for (const std::size_t write_step : {1U, 2U, 7U, 100U}) {
            for (const std::size_t capacity : {1U, 5U, 64U}) {
                coil::run(main(read_step, write_step, capacity));
            }
        }
    }
}

// The reader's buffer is never empty here while it waits: it holds the beginning of a request.
TEST(FlushBeforeRead, AnswersBeforeTheRestOfTheNextRequestArrives) {
    auto main = []() -> task<> {
        auto [client, server] = net::socket::pair();
        auto served = coil::spawn(echo_lines(server, server, 4096));
        EXPECT_EQ(co_await client.send_all("first\nsec"), 9);
        std::string answer(6, '\0');
        EXPECT_EQ(co_await timeout(client.recv_all(answer), 10s), 6);
        EXPECT_EQ(answer, "first\n");
        EXPECT_EQ(co_await client.send_all("ond\n"), 4);
        answer.resize(7);
        EXPECT_EQ(co_await timeout(client.recv_all(answer), 10s), 7);
        EXPECT_EQ(answer, "second\n");
        EXPECT_EQ(co_await client.shutdown_write(), 0);
        co_await served;
    };
    coil::run(main());
}

TEST(FlushBeforeRead, AFailedFlushReadsNothingAndKeepsTheData) {
    auto main = []() -> task<> {
        script_source source("request");
        script_sink sink(100, 0, -ENOBUFS);
        buffered_writer out{sink, 16};
        flush_before_read in{source, out};
        EXPECT_EQ(co_await out.write("answer"), 6);
        char buf[16];
        EXPECT_EQ(co_await in.read_some(buf), -ENOBUFS);
        EXPECT_EQ(source.calls(), 0);
        EXPECT_EQ(out.pending(), 6U);
        EXPECT_EQ(co_await in.read_some(buf), 7);
        EXPECT_EQ(sink.text, "answer");
        EXPECT_EQ(co_await in.read_some(buf), 0);
        EXPECT_EQ(sink.calls(), 2); // without pending data a read makes no other call
    };
    coil::run(main());
}

/// Whether the failure happened; reads are repeated after it.
task<bool> echo_with_failure(int read_fails_at, int write_fails_at) {
    const std::string text = "abcdefghijklmnopqrstuvwxyz";
    script_source source(text, 3, read_fails_at);
    script_sink sink(2, write_fails_at, -ENOBUFS);
    buffered_writer out{sink, 16};
    flush_before_read in{source, out};
    bool has_failed = false;
    char buf[8];
    for (;;) {
        const int n = co_await in.read_some(buf);
        if (n == 0) {
            break;
        }
        if (n < 0) {
            has_failed = true;
            continue;
        }
        EXPECT_EQ(co_await out.write({buf, n}), n);
    }
    EXPECT_EQ(sink.text, text) << read_fails_at << ' ' << write_fails_at;
    co_return has_failed;
}

TEST(FlushBeforeRead, EachCallFailedOnce_NothingIsLostOrDoubled) {
    int reads = 0;
    while (coil::run(echo_with_failure(reads, -1))) {
        ++reads;
    }
    EXPECT_EQ(reads, 10); // nine reads of data and one of the end
    int writes = 0;
    while (coil::run(echo_with_failure(-1, writes))) {
        ++writes;
    }
    EXPECT_EQ(writes, 17); // each piece of three bytes takes two calls, the last piece one
}

TEST(FlushBeforeRead, G3_CancelledWhileItFlushes_KeepsTheRestAndReadsNothing) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        EXPECT_EQ(a.set_send_buffer_size(4096), 0);
        const std::string text = pattern(1 << 20);
        script_source source("x");
        buffered_writer out{a, text.size()};
        EXPECT_EQ(co_await out.write(text), static_cast<int>(text.size()));
        flush_before_read in{source, out};
        char buf[1];
        auto read = [](auto& from, mutable_buffer to) -> task<io_result> {
            co_return co_await from.read_some(to);
        };
        auto handle = coil::spawn(read(in, buf));
        while (out.pending() == text.size()) {
            co_await yield();
        }
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        EXPECT_GT(out.pending(), 0U);
        EXPECT_EQ(source.calls(), 0);

        auto receive = [](net::socket& from, std::size_t size) -> task<std::string> {
            std::string got(size, '\0');
            EXPECT_EQ(co_await from.recv_all(got), static_cast<int>(size));
            co_return got;
        };
        auto received = coil::spawn(receive(b, text.size()));
        EXPECT_EQ(co_await in.read_some(buf), 1);
        EXPECT_TRUE(co_await received == text);
    };
    coil::run(main());
}

TEST(FlushBeforeRead, OwnsAnRvalueStream) {
    auto main = []() -> task<> {
        script_sink sink;
        buffered_writer out{sink};
        buffered_reader in{flush_before_read{script_source("a\nb\n"), out}};
        EXPECT_EQ(co_await out.write("greeting"), 8);
        EXPECT_EQ((co_await in.read_until('\n')).value(), "a");
        EXPECT_EQ(sink.text, "greeting");
        EXPECT_EQ(in.stream().stream().calls(), 1);
    };
    coil::run(main());
}

} // namespace
