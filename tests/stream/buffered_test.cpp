// buffered_reader and buffered_writer: every piece size, every failure once, limits, cancellation.

#include "stream/support.hpp"

#include <random>
#include <string>
#include <system_error>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

static_assert(byte_stream<net::socket>);
static_assert(byte_stream<pipe_end>);
static_assert(byte_stream<fs::file>);
static_assert(byte_source<buffered_reader<net::socket&>>);
static_assert(byte_sink<buffered_writer<net::socket&>>);
static_assert(!byte_stream<int>);
static_assert(!byte_sink<script_source>);

task<std::vector<std::string>> all_lines(std::string text, std::size_t step, std::size_t capacity,
                                         std::size_t max) {
    script_source source(std::move(text), step);
    buffered_reader r{source, capacity};
    std::vector<std::string> all;
    auto lines = r.lines(max);
    while (auto line = co_await lines.next()) {
        all.emplace_back(*line);
    }
    EXPECT_FALSE((co_await lines.next()).has_value()); // it stays at the end
    co_return all;
}

TEST(BufferedReader, LinesInPiecesOfEverySize) {
    using list = std::vector<std::string>;
    const std::vector<std::pair<std::string, list>> texts{
        {"", {}},
        {"\n", {""}},
        {"a", {"a"}},
        {"a\n", {"a"}},
        {"a\r\nbb\r\n", {"a", "bb"}},
        {"\r\n\r\n\n", {"", "", ""}},
        {"one\ntwo\nthree", {"one", "two", "three"}},
        {"a\rb\nc\r", {"a\rb", "c\r"}},
        {std::string(100, 'x') + "\ny", {std::string(100, 'x'), "y"}},
    };
    for (const auto& [text, lines] : texts) {
        for (std::size_t step = 1; step <= text.size() + 1; ++step) {
            for (const std::size_t capacity : {1, 2, 3, 64, 4096}) {
                EXPECT_EQ(coil::run(all_lines(text, step, capacity, 1000)), lines)
                    << text << " by " << step << ", capacity " << capacity;
            }
        }
    }
}

// Delimiters are searched in blocks, of which some have none, some only a few, and some nothing
// else.
TEST(BufferedReader, LinesOfEveryLengthInLargeBlocks) {
    std::mt19937 random(1);
    for (const unsigned longest : {0U, 1U, 3U, 20U, 63U, 64U, 200U, 1500U, 5000U}) {
        std::vector<std::string> lines;
        std::string text;
        while (text.size() < 20'000) {
            lines.emplace_back(random() % (longest + 1),
                               static_cast<char>('a' + lines.size() % 26));
            text += lines.back() + (random() % 4 == 0 ? "\r\n" : "\n");
        }
        for (const std::size_t step : {1000U, 1024U, 4000U, 30'000U}) {
            for (const std::size_t capacity : {100U, 1024U, 6000U, 32'768U}) {
                EXPECT_EQ(coil::run(all_lines(text, step, capacity, 10'000)), lines)
                    << "up to " << longest << " bytes by " << step << ", capacity " << capacity;
            }
        }
    }
}

TEST(BufferedReader, ALineThatIsTooLongThrowsAndConsumesNothing) {
    auto main = [](std::size_t step) -> task<> {
        script_source source("12345\n1234\nx", step);
        buffered_reader r{source, 4};
        bool has_thrown = false;
        try {
            co_await r.read_until('\n', 4);
        } catch (const std::system_error& e) {
            has_thrown = e.code() == std::errc::message_size;
        }
        EXPECT_TRUE(has_thrown);
        EXPECT_EQ((co_await r.read_until('\n', 5)).value(), "12345");
        EXPECT_TRUE(r.delimited());
        EXPECT_EQ((co_await r.read_until('\n', 4)).value(), "1234"); // just as long as it may be
        EXPECT_EQ((co_await r.read_until('\n', 4)).value(), "x");
        EXPECT_FALSE(r.delimited());
        EXPECT_FALSE((co_await r.read_until('\n', 4)).has_value());
    };
    for (std::size_t step = 1; step <= 12; ++step) {
        coil::run(main(step));
    }
}

TEST(BufferedReader, TheLimitOfALineCountsItsCarriageReturn) {
    for (std::size_t step = 1; step <= 6; ++step) {
        EXPECT_EQ(coil::run(all_lines("1234\n", step, 4, 4)), std::vector<std::string>{"1234"});
        EXPECT_EQ(coil::run(all_lines("1234\r\n", step, 4, 5)), std::vector<std::string>{"1234"});
        EXPECT_THROW(coil::run(all_lines("1234\r\n", step, 4, 4)), std::system_error);
    }
}

TEST(BufferedReader, GarbageWithoutALineEndIsRefusedInBoundedMemory) {
    auto main = []() -> task<bool> {
        script_source source(std::string(1 << 20, '\xff'), 1000);
        buffered_reader r{source, 64};
        try {
            co_await r.read_until('\n', 5000);
        } catch (const std::system_error&) {
            co_return r.buffered().size() <= 5001;
        }
        co_return false;
    };
    EXPECT_TRUE(coil::run(main()));
}

TEST(BufferedReader, DelimitersMayChange) {
    auto main = []() -> task<> {
        script_source source(std::string("a,b;c\0d", 7), 1);
        buffered_reader r{source};
        EXPECT_EQ((co_await r.read_until(',')).value(), "a");
        EXPECT_EQ((co_await r.read_until(';')).value(), "b");
        EXPECT_EQ((co_await r.read_until('\0')).value(), "c");
        EXPECT_EQ((co_await r.read_until('\0')).value(), "d");
    };
    coil::run(main());
}

TEST(BufferedReader, ReadExactOfEverySize) {
    auto main = [](std::size_t first, std::size_t second, std::size_t capacity) -> task<> {
        const std::string text = pattern(20);
        script_source source(text, 3);
        buffered_reader r{source, capacity};
        std::string a(first, '\0');
        std::string b(second, '\0');
        EXPECT_EQ(co_await r.read_exact(a), static_cast<int>(first));
        EXPECT_EQ(a, text.substr(0, first));
        const int n = co_await r.read_exact(b);
        if (first + second <= text.size()) {
            EXPECT_EQ(n, static_cast<int>(second));
            EXPECT_EQ(b, text.substr(first, second));
        } else {
            EXPECT_EQ(n, -ENODATA);
        }
    };
    for (std::size_t first = 0; first <= 20; ++first) {
        for (std::size_t second = 0; second <= 22; ++second) {
            for (const std::size_t capacity : {1, 4, 100}) {
                coil::run(main(first, second, capacity));
            }
        }
    }
}

TEST(BufferedReader, EachReadFailedOnce_NothingIsLost) {
    auto main = [](int fails_at) -> task<bool> {
        script_source source("one\ntwo\nthree\n", 2, fails_at);
        buffered_reader r{source, 4};
        std::string all;
        bool has_failed = false;
        for (;;) {
            try {
                while (auto line = co_await r.read_until('\n')) {
                    all += *line;
                    all += '|';
                }
                break;
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::io_error);
                has_failed = true;
            }
        }
        EXPECT_EQ(all, "one|two|three|");
        co_return has_failed;
    };
    int fails_at = 0;
    while (coil::run(main(fails_at))) {
        ++fails_at;
    }
    EXPECT_EQ(fails_at, 8); // seven reads and the end
}

TEST(BufferedReader, OwnsAnRvalueStream) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        EXPECT_EQ(co_await a.send("x\ny"), 3);
        buffered_reader r{std::move(b)};
        EXPECT_EQ((co_await r.read_until('\n')).value(), "x");
        EXPECT_EQ(r.buffered(), "y");
        char c;
        EXPECT_EQ((co_await r.read_some({&c, 1})), 1);
        EXPECT_TRUE(r.stream());
    };
    coil::run(main());
}

TEST(BufferedReader, G3_CancelledKeepsWhatItHasRead) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        buffered_reader r{b};
        auto read = [](buffered_reader<net::socket&>& from) -> task<std::string> {
            try {
                co_return std::string((co_await from.read_until('\n')).value());
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::operation_canceled);
                co_return "cancelled";
            }
        };
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(co_await a.send("ab"), 2);
            auto handle = coil::spawn(read(r));
            while (r.buffered().size() < static_cast<std::size_t>(2 * i + 2)) {
                co_await yield();
            }
            handle.cancel();
            EXPECT_EQ(co_await handle, "cancelled");
        }
        EXPECT_EQ(co_await a.send("!\n"), 2);
        EXPECT_EQ((co_await r.read_until('\n')).value(), "ababab!");
    };
    coil::run(main());
}

TEST(BufferedReader, InCombinations) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        buffered_reader r{b};
        auto first = co_await when_any(r.read_until('\n'), timeout(1ms));
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(co_await a.send("late\n"), 5);
        auto line = co_await timeout(r.read_until('\n'), 10s);
        EXPECT_EQ(line.value(), "late");
    };
    coil::run(main());
}

// ---- buffered_writer

TEST(BufferedWriter, GathersSmallWrites) {
    auto main = []() -> task<> {
        script_sink sink;
        buffered_writer w{sink, 8};
        EXPECT_EQ(co_await w.write("abc"), 3);
        EXPECT_EQ(co_await w.write("de"), 2);
        EXPECT_EQ(co_await w.write(""), 0);
        EXPECT_EQ(sink.calls(), 0);
        EXPECT_EQ(w.pending(), 5U);
        EXPECT_EQ(co_await w.write("fghi"), 4); // does not fit into the rest of the buffer
        EXPECT_EQ(sink.text, "abcde");
        EXPECT_EQ(co_await w.flush(), 0);
        EXPECT_EQ(sink.text, "abcdefghi");
        EXPECT_EQ(sink.calls(), 2);
        EXPECT_EQ(co_await w.write("larger than the buffer"), 22);
        EXPECT_EQ(w.pending(), 0U);
        EXPECT_EQ(co_await w.flush(), 0);
        EXPECT_EQ(sink.calls(), 3); // a flush of nothing makes no call
        EXPECT_EQ(co_await w.write("x"), 1);
        EXPECT_EQ(co_await w.shutdown_write(), 0);
        EXPECT_TRUE(sink.is_shut_down);
        EXPECT_EQ(sink.text, "abcdefghilarger than the bufferx");
    };
    coil::run(main());
}

TEST(BufferedWriter, EachWriteFailedOnce_NothingIsLostOrDoubled) {
    auto main = [](int fails_at, std::size_t step) -> task<bool> {
        script_sink sink(step, fails_at, -ENOBUFS);
        buffered_writer w{sink, 8};
        bool has_failed = false;
        const std::string text = "abcdefghijklmnopqrstuvwxyz";
        for (std::size_t i = 0; i < text.size();) {
            const int n = co_await w.write(std::string_view(text).substr(i, 3));
            if (n < 0) {
                has_failed = true; // a write that fits into the buffer is all or nothing
            } else {
                i += static_cast<std::size_t>(n);
            }
        }
        while (co_await w.flush() < 0) {
            has_failed = true;
        }
        EXPECT_EQ(sink.text, text) << fails_at << ' ' << step;
        co_return has_failed;
    };
    for (std::size_t step = 1; step <= 9; ++step) {
        int fails_at = 0;
        while (coil::run(main(fails_at, step))) {
            ++fails_at;
        }
        EXPECT_GE(fails_at, 4);
    }
}

TEST(BufferedWriter, ASinkThatTakesNothingIsAnError) {
    auto main = []() -> task<> {
        script_sink sink(0);
        buffered_writer w{sink, 4};
        EXPECT_EQ(co_await w.write("a"), 1);
        EXPECT_EQ(co_await w.flush(), -EIO);
        EXPECT_EQ(co_await write_all(sink, "abc"), -EIO);
    };
    coil::run(main());
}

TEST(BufferedWriter, G3_CancelledFlushKeepsTheRest) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        EXPECT_EQ(a.set_send_buffer_size(4096), 0);
        const std::string text = pattern(1 << 20);
        buffered_writer w{a, text.size()};
        EXPECT_EQ(co_await w.write(text), static_cast<int>(text.size()));
        auto flush = [](auto& writer) -> task<io_result> { co_return co_await writer.flush(); };
        auto handle = coil::spawn(flush(w));
        while (w.pending() == text.size()) {
            co_await yield();
        }
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        EXPECT_GT(w.pending(), 0U);
        auto receive = [](net::socket& from, std::size_t size) -> task<std::string> {
            std::string got(size, '\0');
            EXPECT_EQ(co_await from.recv_all(got), static_cast<int>(size));
            co_return got;
        };
        auto received = coil::spawn(receive(b, text.size()));
        EXPECT_EQ(co_await w.flush(), 0);
        EXPECT_TRUE(co_await received == text);
    };
    coil::run(main());
}

} // namespace
