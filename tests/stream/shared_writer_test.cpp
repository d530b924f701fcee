// shared_writer: whole messages in order, combining, back-pressure, cancellation, torn streams.

#include "stream/in_world.hpp"
#include "stream/support.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

static_assert(byte_sink<shared_writer<net::socket&>>);
static_assert(byte_sink<shared_writer<script_sink>>);

/// A sink that takes `step` bytes for each permit, and waits for permits.
class gated_sink {
public:
    explicit gated_sink(std::size_t step = 1 << 20) : step_(step) {}

    task<io_result> write_some(const_buffer from) {
        ++calls;
        try {
            co_await permits.acquire();
        } catch (const std::system_error&) {
            co_return io_result(-ECANCELED);
        }
        if (error != 0) {
            co_return io_result(error);
        }
        const std::size_t n = std::min(step_, from.size());
        text.append(static_cast<const char*>(from.data()), n);
        co_return io_result(static_cast<int>(n));
    }
    task<io_result> shutdown_write() { co_return io_result(0); }

    coil::counting_semaphore<> permits{0};
    std::string text;
    int calls = 0;
    int error = 0;

private:
    std::size_t step_;
};

/// The other coroutines run until they wait.
task<> settle() {
    for (int i = 0; i < 10; ++i) {
        co_await yield();
    }
}

template <class Writer>
task<io_result> write_to(Writer& w, std::string message) {
    co_return co_await w.write(message);
}

/// The same as a coroutine that the test destroys.
template <class Writer>
coil_test::manual manual_write(Writer& w, std::string message) {
    co_await w.write(message);
}

/// Writer, number, size of the rest, and the rest, which depends on all of these.
std::string numbered(unsigned writer, unsigned number, std::size_t rest) {
    std::string message{static_cast<char>(writer), static_cast<char>(number),
                        static_cast<char>(rest >> 8U), static_cast<char>(rest)};
    for (std::size_t i = 0; i < rest; ++i) {
        message += static_cast<char>(writer * 31 + number * 7 + i);
    }
    return message;
}

/// The numbers of the messages that each writer has sent.
using sent = std::map<unsigned, std::vector<unsigned>>;

/// Reads numbered messages. The text must consist of whole messages, apart from its end if it is
/// `torn`.
sent parse(const std::string& text, bool torn = false) {
    sent all;
    const auto byte = [&](std::size_t at) {
        return std::size_t{static_cast<unsigned char>(text[at])};
    };
    for (std::size_t at = 0; at < text.size();) {
        const bool has_header = text.size() - at >= 4;
        const std::size_t rest = has_header ? byte(at + 2) << 8U | byte(at + 3) : 0;
        if (!has_header || text.size() - at < 4 + rest) {
            EXPECT_TRUE(torn) << "the text ends within a message";
            break;
        }
        const auto writer = static_cast<unsigned>(byte(at));
        const auto number = static_cast<unsigned>(byte(at + 1));
        if (text.compare(at, 4 + rest, numbered(writer, number, rest)) != 0) {
            ADD_FAILURE() << "at " << at << ": not message " << number << " of " << writer;
            break;
        }
        all[writer].push_back(number);
        at += 4 + rest;
    }
    return all;
}

TEST(SharedWriter, MessagesOfManyWritersAreWholeAndInOrder) {
    static constexpr unsigned writers = 50;
    static constexpr unsigned messages = 20;
    auto writes = [](shared_writer<script_sink&>& to, unsigned me) -> task<> {
        std::mt19937 random(me);
        for (unsigned i = 0; i < messages; ++i) {
            const std::string message = numbered(me, i, random() % 100);
            EXPECT_EQ(co_await to.write(message), static_cast<int>(message.size()));
            for (unsigned pause = random() % 4; pause > 0; --pause) {
                co_await yield();
            }
        }
    };
    auto main = [writes](std::size_t step, std::size_t capacity) -> task<> {
        script_sink sink(step);
        shared_writer w{sink, capacity};
        scope all;
        for (unsigned i = 0; i < writers; ++i) {
            all.spawn(writes(w, i));
        }
        co_await all.join();
        EXPECT_EQ(w.pending(), 0U);
        const sent got = parse(sink.text);
        EXPECT_EQ(got.size(), writers);
        for (const auto& [writer, numbers] : got) {
            EXPECT_EQ(numbers.size(), messages) << writer;
            EXPECT_TRUE(std::ranges::is_sorted(numbers)) << writer;
        }
    };
    for (const std::size_t step : {1U, 3U, 17U, 64U, 1000U, 1U << 20U}) {
        // Messages of up to 104 bytes: some, most or none of them fit into the smaller buffers.
        for (const std::size_t capacity : {0U, 1U, 20U, 60U, 104U, 150U, 16U * 1024U}) {
            coil::run(main(step, capacity));
        }
    }
}

TEST(SharedWriter, OneCallForTheMessagesOfATurn) {
    auto main = []() -> task<> {
        script_sink sink;
        shared_writer w{sink};
        scope all;
        for (unsigned i = 0; i < 50; ++i) {
            all.spawn(write_to(w, numbered(i, 0, i)));
        }
        co_await all.join();
        EXPECT_EQ(parse(sink.text).size(), 50U);
        EXPECT_EQ(sink.calls(), 1);
    };
    coil::run(main());
}

TEST(SharedWriter, OneCallForTheMessagesThatArriveDuringACall) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink};
        auto first = coil::spawn(write_to(w, "first "));
        co_await settle();
        std::vector<join_handle<io_result>> others;
        for (unsigned i = 0; i < 50; ++i) {
            others.push_back(coil::spawn(write_to(w, "x")));
        }
        co_await settle();
        EXPECT_EQ(sink.calls, 1);
        EXPECT_EQ(w.pending(), 56U);
        sink.permits.release();
        EXPECT_EQ(co_await first, 6); // does not wait for the others
        co_await settle();
        EXPECT_EQ(sink.calls, 2);
        EXPECT_EQ(w.pending(), 50U);
        sink.permits.release();
        for (auto& other : others) {
            EXPECT_EQ(co_await other, 1);
        }
        EXPECT_EQ(sink.text, "first " + std::string(50, 'x'));
        EXPECT_EQ(sink.calls, 2);
    };
    coil::run(main());
}

TEST(SharedWriter, AFullBufferHoldsCallsBackInTheirOrder) {
    auto main = []() -> task<> {
        gated_sink sink(4);
        shared_writer w{sink, 8};
        auto a = coil::spawn(write_to(w, "aaaaa"));
        auto b = coil::spawn(write_to(w, "bbbbb")); // does not fit
        auto c = coil::spawn(write_to(w, "c"));     // fits, but does not overtake
        co_await settle();
        EXPECT_EQ(w.pending(), 5U);
        sink.permits.release(); // "aaaa": then there is room for both
        co_await settle();
        EXPECT_FALSE(a.done());
        EXPECT_EQ(w.pending(), 7U);
        sink.permits.release(10);
        EXPECT_EQ(co_await a, 5);
        EXPECT_EQ(co_await b, 5);
        EXPECT_EQ(co_await c, 1);
        EXPECT_EQ(sink.text, "aaaaabbbbbc");
    };
    coil::run(main());
}

TEST(SharedWriter, AMessageInPartsAndAnEmptyOne) {
    auto main = [](std::size_t step, std::size_t capacity) -> task<> {
        script_sink sink(step);
        shared_writer w{sink, capacity};
        const const_buffer parts[] = {"head", "", "body", ""};
        EXPECT_EQ(co_await w.writev(parts), 8);
        EXPECT_EQ(co_await w.write(""), 0);
        EXPECT_EQ(co_await w.writev({}), 0);
        EXPECT_EQ(co_await write_all(w, "more"), 4);
        EXPECT_EQ(sink.text, "headbodymore");
    };
    for (const std::size_t step : {1U, 3U, 100U}) {
        for (const std::size_t capacity : {0U, 7U, 8U, 100U}) {
            coil::run(main(step, capacity));
        }
    }
}

TEST(SharedWriter, FlushWaitsForAllEarlierCalls) {
    auto main = []() -> task<> {
        gated_sink sink(4);
        shared_writer w{sink, 4};
        EXPECT_EQ(co_await w.flush(), 0);
        EXPECT_EQ(sink.calls, 0); // nothing to write
        auto large = coil::spawn(write_to(w, "large!"));
        auto flush = [](auto& to) -> task<io_result> { co_return co_await to.flush(); };
        auto flushed = coil::spawn(flush(w));
        auto small = coil::spawn(write_to(w, "s"));
        co_await settle();
        EXPECT_FALSE(flushed.done());
        sink.permits.release();
        co_await settle();
        EXPECT_FALSE(flushed.done()); // a part of the large message is missing
        sink.permits.release();
        co_await settle();
        EXPECT_TRUE(flushed.done());
        EXPECT_FALSE(small.done());
        sink.permits.release();
        EXPECT_EQ(co_await large, 6);
        EXPECT_EQ(co_await flushed, 0);
        EXPECT_EQ(co_await small, 1);
        EXPECT_EQ(sink.text, "large!s");
    };
    coil::run(main());
}

TEST(SharedWriter, OwnsAnRvalueStreamAndShutsItDown) {
    auto main = []() -> task<> {
        shared_writer w{script_sink()};
        EXPECT_EQ(co_await w.write("x"), 1);
        EXPECT_EQ(co_await w.shutdown_write(), 0);
        EXPECT_EQ(w.stream().text, "x");
        EXPECT_TRUE(w.stream().is_shut_down);
    };
    coil::run(main());
}

// ---- Errors

TEST(SharedWriter, AnErrorOfTheStreamReachesEveryCall) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink, 4};
        std::vector<join_handle<io_result>> calls;
        for (unsigned i = 0; i < 10; ++i) { // half of them do not fit
            calls.push_back(coil::spawn(write_to(w, i == 7 ? "larger" : "x")));
        }
        co_await settle();
        sink.error = -EPIPE;
        sink.permits.release(100);
        for (auto& call : calls) {
            EXPECT_EQ(co_await call, -EPIPE);
        }
        EXPECT_EQ(co_await w.write("later"), -EPIPE);
        EXPECT_EQ(co_await w.flush(), -EPIPE);
        EXPECT_EQ(sink.text, "");
    };
    coil::run(main());
}

// The call that has failed is accepted, so its message is written by the next one.
TEST(SharedWriter, EachCallFailedOnce_NothingIsLostOrDoubled) {
    auto main = [](int fails_at, std::size_t step) -> task<bool> {
        script_sink sink(step, fails_at, -ENOBUFS);
        shared_writer w{sink, 64};
        scope all;
        for (unsigned i = 0; i < 20; ++i) {
            all.spawn(write_to(w, numbered(i, 0, i % 7)));
        }
        co_await all.join();
        const int flushed = co_await w.flush(); // writes what the failed call has left, if any
        EXPECT_TRUE(flushed == 0 || flushed == -ENOBUFS);
        EXPECT_EQ(co_await w.flush(), 0);
        EXPECT_EQ(parse(sink.text).size(), 20U);
        co_return sink.calls() > fails_at;
    };
    for (const std::size_t step : {1U, 5U, 40U, 1000U}) {
        int fails_at = 0;
        while (coil::run(main(fails_at, step))) {
            ++fails_at;
        }
        EXPECT_GE(fails_at, 3);
    }
}

TEST(SharedWriter, AMessageThatIsTooLongIsRefused) {
    auto main = []() -> task<> {
        script_sink sink;
        shared_writer w{sink};
        EXPECT_EQ(co_await w.write({"", std::size_t{0x7ffff001}}), -EMSGSIZE);
        EXPECT_EQ(w.pending(), 0U);
        EXPECT_EQ(co_await w.write("x"), 1);
    };
    coil::run(main());
}

TEST(SharedWriter, AStreamThatTakesNothingIsAnError) {
    auto main = []() -> task<> {
        script_sink sink(0);
        shared_writer w{sink, 4};
        EXPECT_EQ(co_await w.write("a"), -EIO);
        EXPECT_EQ(w.pending(), 1U);
        EXPECT_EQ(co_await w.write("larger"), -EIO);
    };
    coil::run(main());
}

TEST(SharedWriter, ALargeMessageThatFailsInTheMiddleTearsTheStream) {
    auto main = [](int fails_at) -> task<> {
        script_sink sink(2, fails_at, -ENOBUFS);
        shared_writer w{sink, 4};
        auto large = coil::spawn(write_to(w, "large!"));
        auto after = coil::spawn(write_to(w, "ok"));
        EXPECT_EQ(co_await large, -ENOBUFS);
        if (fails_at == 0) { // nothing of it was written
            EXPECT_EQ(co_await after, 2);
            EXPECT_EQ(co_await w.write("fine"), 4);
            EXPECT_EQ(sink.text, "okfine");
        } else {
            EXPECT_EQ(co_await after, -EPIPE);
            EXPECT_EQ(co_await w.write("x"), -EPIPE);
            EXPECT_EQ(co_await w.flush(), -EPIPE);
            EXPECT_EQ(sink.calls(), fails_at + 1);
        }
    };
    for (int fails_at = 0; fails_at < 3; ++fails_at) {
        coil::run(main(fails_at));
    }
}

TEST(SharedWriter, AFlushBehindALargeMessageThatFailsHasNothingToWrite) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink, 4};
        auto flush = [](auto& to) -> task<io_result> { co_return co_await to.flush(); };
        auto large = coil::spawn(write_to(w, "large!"));
        co_await settle();
        auto flushed = coil::spawn(flush(w));
        co_await settle();
        large.cancel();
        EXPECT_EQ(co_await large, -ECANCELED);
        EXPECT_EQ(co_await flushed, 0);
        EXPECT_EQ(sink.calls, 1);
    };
    coil::run(main());
}

// ---- Cancellation

TEST(SharedWriter, G3_CancelledBeforeItIsAccepted_NothingIsWritten) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink, 4};
        auto a = coil::spawn(write_to(w, "aaa"));
        auto b = coil::spawn(write_to(w, "bbb"));
        auto large = coil::spawn(write_to(w, "large"));
        auto c = coil::spawn(write_to(w, "c"));
        co_await settle();
        EXPECT_EQ(w.pending(), 3U);
        b.cancel();
        EXPECT_EQ(co_await b, -ECANCELED);
        large.cancel();
        EXPECT_EQ(co_await large, -ECANCELED);
        EXPECT_EQ(w.pending(), 4U); // nothing is before `c` any more
        sink.permits.release(10);
        EXPECT_EQ(co_await a, 3);
        EXPECT_EQ(co_await c, 1);
        EXPECT_EQ(sink.text, "aaac");
    };
    coil::run(main());
}

TEST(SharedWriter, G3_CancelledBeforeTheCall_NothingIsWritten) {
    auto main = []() -> task<> {
        script_sink sink;
        shared_writer w{sink};
        auto call = [](shared_writer<script_sink&>& to) -> task<io_result> {
            static_cast<void>(co_await sleep_for(1h));
            co_return co_await to.write("x");
        };
        auto handle = coil::spawn(call(w));
        co_await settle();
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        EXPECT_EQ(w.pending(), 0U);
        EXPECT_EQ(sink.calls(), 0);
    };
    coil::run(main());
}

/// Returns a call that writes "a" and waits for a permit. A call behind it, whose message "b" was
/// accepted, has been cancelled.
task<join_handle<io_result>> write_before_a_cancelled_call(shared_writer<gated_sink&>& w) {
    auto a = coil::spawn(write_to(w, "a"));
    co_await settle();
    auto b = coil::spawn(write_to(w, "b"));
    co_await settle();
    b.cancel();
    EXPECT_EQ(co_await b, -ECANCELED);
    co_return a;
}

TEST(SharedWriter, G3_CancelledAfterItWasAccepted_IsWrittenByTheOthers) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink};
        auto a = co_await write_before_a_cancelled_call(w);
        sink.permits.release(10);
        EXPECT_EQ(co_await a, 1); // nobody else waits: this call writes what is left
        EXPECT_EQ(sink.text, "ab");
        EXPECT_EQ(w.pending(), 0U);
    };
    coil::run(main());
}

TEST(SharedWriter, ACallWhoseMessageIsWrittenDoesNotFailForACancelledOne) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink};
        auto a = co_await write_before_a_cancelled_call(w);
        sink.permits.release();
        co_await settle();
        EXPECT_FALSE(a.done());
        a.cancel(); // while it writes the message of the other call
        EXPECT_EQ(co_await a, 1);
        EXPECT_EQ(w.pending(), 1U);
        sink.permits.release();
        EXPECT_EQ(co_await w.flush(), 0);
        EXPECT_EQ(sink.text, "ab");
    };
    coil::run(main());
}

TEST(SharedWriter, G3_TheWriterIsCancelledWithinAMessage_TheNextCallContinues) {
    auto main = [](bool others) -> task<> {
        gated_sink sink(3);
        shared_writer w{sink};
        auto a = coil::spawn(write_to(w, "aaaaa"));
        std::optional<join_handle<io_result>> b;
        if (others) {
            b = coil::spawn(write_to(w, "bb"));
        }
        co_await settle();
        sink.permits.release();
        co_await settle();
        EXPECT_EQ(sink.text, "aaa");
        a.cancel();
        EXPECT_EQ(co_await a, -ECANCELED);
        sink.permits.release(10);
        if (others) {
            EXPECT_EQ(co_await *b, 2);
        } else {
            co_await settle();
            EXPECT_EQ(w.pending(), 2U); // until the next call
            EXPECT_EQ(co_await w.write("bb"), 2);
        }
        EXPECT_EQ(sink.text, "aaaaabb");
    };
    coil::run(main(true));
    coil::run(main(false));
}

// ---- Destroyed coroutines

TEST(SharedWriter, ACoroutineIsDestroyedWhileItWrites_TheStreamIsTorn) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink, 4};
        coil_test::manual writer = manual_write(w, "a");
        writer.start();
        auto accepted = coil::spawn(write_to(w, "b"));
        auto waits = coil::spawn(write_to(w, "cccc"));
        co_await settle();
        EXPECT_EQ(sink.calls, 1);
        writer.destroy();
        EXPECT_EQ(co_await accepted, -EPIPE);
        EXPECT_EQ(co_await waits, -EPIPE);
        EXPECT_EQ(co_await w.write("x"), -EPIPE);
        EXPECT_EQ(co_await w.flush(), -EPIPE);
        EXPECT_EQ(sink.calls, 1);
    };
    coil::run(main());
}

TEST(SharedWriter, ACoroutineIsDestroyedWhileASocketSends_TheStreamIsTorn) {
    auto main = [](std::size_t capacity) -> task<> {
        auto [a, b] = net::socket::pair();
        EXPECT_EQ(a.set_send_buffer_size(4096), 0);
        shared_writer w{a, capacity};
        coil_test::manual writer = manual_write(w, pattern(1 << 20));
        writer.start();
        auto other = coil::spawn(write_to(w, "x"));
        char first;
        EXPECT_EQ(co_await b.recv({&first, 1}), 1); // a send is in flight now, or was
        co_await settle();
        EXPECT_FALSE(writer.done());
        writer.destroy();
        EXPECT_EQ(co_await other, -EPIPE);
        EXPECT_EQ(co_await w.write("y"), -EPIPE);
    };
    coil::run(main(2 << 20));
    coil::run(main(100));
}

TEST(SharedWriter, ACoroutineIsDestroyedBeforeItWrites_TheNextOneWrites) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink};
        std::optional<coil_test::manual> first(manual_write(w, "a"));
        std::optional<coil_test::manual> second(manual_write(w, "b"));
        first->start();
        second->start();
        auto third = coil::spawn(write_to(w, "c"));
        first.reset();  // the call leads, and has yielded
        second.reset(); // the call was given the lead, and has not resumed
        sink.permits.release(10);
        EXPECT_EQ(co_await third, 1);
        EXPECT_EQ(sink.text, "abc");
    };
    coil::run(main());
}

TEST(SharedWriter, ACoroutineWithALargeMessageIsDestroyedBeforeItWrites_TheOthersGoOn) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink, 4};
        std::optional<coil_test::manual> large(manual_write(w, "large!"));
        large->start();
        coil_test::manual empty = manual_write(w, "");
        empty.start();
        coil_test::manual small = manual_write(w, "b");
        small.start();
        EXPECT_EQ(w.pending(), 0U);
        large.reset();
        EXPECT_EQ(w.pending(), 1U);
        sink.permits.release(10);
        co_await settle();
        EXPECT_TRUE(empty.done());
        EXPECT_TRUE(small.done());
        EXPECT_EQ(sink.text, "b");
        EXPECT_EQ(sink.calls, 1);
    };
    coil::run(main());
}

TEST(SharedWriter, ACoroutineIsDestroyedWhileItWaits_TheOthersGoOn) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink, 4};
        auto a = coil::spawn(write_to(w, "a"));
        co_await settle();
        std::optional<coil_test::manual> accepted(manual_write(w, "bb"));
        std::optional<coil_test::manual> waits(manual_write(w, "ccc"));
        accepted->start();
        waits->start();
        auto d = coil::spawn(write_to(w, "d"));
        co_await settle();
        EXPECT_EQ(w.pending(), 3U);
        waits.reset();
        EXPECT_EQ(w.pending(), 4U); // "d" has the room
        accepted.reset();
        sink.permits.release(10);
        EXPECT_EQ(co_await a, 1);
        EXPECT_EQ(co_await d, 1);
        EXPECT_EQ(sink.text, "abbd");
    };
    coil::run(main());
}

TEST(SharedWriter, G5_ShutdownWhileManyWrite) {
    int destroyed_calls = 0;
    auto writes = [&](shared_writer<net::socket&>& to) -> task<> {
        const coil_test::on_destruction counts(destroyed_calls);
        const std::string message(300, 'x');
        for (;;) {
            co_await to.write(message);
        }
    };
    auto session = [&]() -> task<> {
        auto [a, b] = net::socket::pair();
        EXPECT_EQ(a.set_send_buffer_size(4096), 0);
        shared_writer w{a, 1000};
        scope all;
        for (int i = 0; i < 20; ++i) {
            all.spawn(writes(w));
        }
        co_await all.join();
    };
    auto stops = [](io_context& ctx) -> task<> {
        co_await settle();
        ctx.stop();
    };
    {
        io_context ctx;
        ctx.co_spawn(session());
        ctx.co_spawn(stops(ctx));
        ctx.run();
    }
    EXPECT_EQ(destroyed_calls, 20);
}

TEST(SharedWriter, AStreamThatThrowsTearsTheStream) {
    struct throwing_sink {
        task<io_result> write_some(const_buffer) {
            co_await yield();
            throw std::system_error(std::make_error_code(std::errc::io_error));
        }
        task<io_result> shutdown_write() { co_return io_result(0); }
    };
    auto main = []() -> task<> {
        throwing_sink sink;
        shared_writer w{sink};
        auto first = coil::spawn(write_to(w, "a"));
        auto second = coil::spawn(write_to(w, "b"));
        EXPECT_THROW(co_await first, std::system_error);
        EXPECT_EQ(co_await second, -EPIPE);
    };
    coil::run(main());
}

// ---- Sockets, in the simulator

/// Writers with limits on a connection with faults: what one of them was told to be written has
/// arrived, nothing arrives twice, and the stream consists of whole messages.
task<> expect_whole_messages(std::uint64_t seed) {
    auto [client, server] = net::socket::pair();
    shared_writer out{client, 200};
    sent acknowledged;
    bool torn = false;
    auto writes = [&](unsigned me) -> task<> {
        std::mt19937 random(static_cast<unsigned>(seed) * 100 + me);
        for (unsigned i = 0; i < 20; ++i) {
            const std::string message = numbered(me, i, random() % (random() % 8 == 0 ? 400 : 60));
            const int n =
                co_await timeout(out.write(message), std::chrono::microseconds(random() % 2000));
            if (n >= 0) {
                EXPECT_EQ(n, static_cast<int>(message.size()));
                acknowledged[me].push_back(i);
            }
            torn = torn || n == -EPIPE;
        }
    };
    auto reads = [](net::socket& from) -> task<std::string> {
        std::string all;
        char buf[300];
        for (int n = 1; n != 0;) {
            n = co_await from.recv(buf);
            if (n > 0) {
                all.append(buf, static_cast<std::size_t>(n));
            }
        }
        co_return all;
    };
    auto received = coil::spawn(reads(server));
    scope all;
    for (unsigned i = 0; i < 10; ++i) {
        all.spawn(writes(i));
    }
    co_await all.join();
    int last = co_await out.flush();
    while (last < 0 && last != -EPIPE) {
        last = co_await out.flush();
    }
    torn = torn || last == -EPIPE;
    EXPECT_EQ(co_await client.shutdown_write(), 0);
    sent got = parse(co_await received, torn);
    for (const auto& [writer, numbers] : got) {
        EXPECT_TRUE(std::ranges::is_sorted(numbers, std::less_equal())) << "writer " << writer;
    }
    for (const auto& [writer, numbers] : acknowledged) {
        EXPECT_TRUE(std::ranges::includes(got[writer], numbers)) << "writer " << writer;
    }
}

TEST(SharedWriter, WholeMessagesThroughFaultsAndLimits) {
    sim::for_each_seed(static_cast<std::uint64_t>(coil_test::rounds(100, 5000)),
                       [](std::uint64_t seed) {
                           sim::world_options options;
                           options.faults = sim::fault_plan::timing();
                           options.faults.short_transfer = 300;
                           options.faults.cancel = 20;
                           options.faults.no_buffers = 50;
                           sim::world w{seed, options};
                           auto done = w.host("host").spawn(expect_whole_messages(seed));
                           EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1h));
                           done.get();
                           return !testing::Test::HasFailure();
                       });
}

// ---- Misuse

// mistake 14: a shared_writer is destroyed while a coroutine writes to it
TEST(SharedWriterDeathTest, DestroyedWhileACoroutineWrites) {
    auto main = []() -> task<> {
        gated_sink sink;
        auto w = std::make_unique<shared_writer<gated_sink&>>(sink);
        const auto call = coil::spawn(write_to(*w, "a"));
        co_await settle();
        EXPECT_FALSE(call.done());
        w.reset();
    };
    EXPECT_DEATH(coil::run(main()),
                 "coil: a shared_writer is destroyed while a coroutine writes to it");
}

// mistake 13: a shared_writer is used on two contexts at once
TEST(SharedWriterDeathTest, UsedOnTwoContexts) {
    auto main = []() -> task<> {
        gated_sink sink;
        shared_writer w{sink};
        const auto call = coil::spawn(write_to(w, "a"));
        co_await settle();
        EXPECT_FALSE(call.done());
        std::thread([&] { coil::run(write_to(w, "b")); }).join();
    };
    EXPECT_DEATH(coil::run(main()),
                 "coil: a shared_writer is used on a context while another one uses it");
}

} // namespace
