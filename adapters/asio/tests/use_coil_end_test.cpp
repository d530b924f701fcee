// use_coil: cancellation, time limits, destroyed frames, failing networks.

#include "support/cutting_proxy.hpp"
#include "support/run.hpp"

#include <coil/asio.hpp>
#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <asio.hpp>

namespace {

using namespace coil;
using namespace std::chrono_literals;
using asio::ip::tcp;
using stream = asio::local::stream_protocol;

/// The Asio objects that the operations use.
struct objects {
    objects() { asio::local::connect_pair(a, b); }
    asio_thread io;
    stream::socket a{io.context()};
    stream::socket b{io.context()};
    asio::steady_timer timer{io.context(), 1h};
    tcp::acceptor acceptor{io.context(), {asio::ip::address_v4::loopback(), 0}};
    asio::signal_set signals{io.context(), SIGUSR2};
};
using operation = task<> (*)(objects&);

struct awaited_operation {
    const char* name;
    operation start;
    friend std::ostream& operator<<(std::ostream& to, const awaited_operation& of) {
        return to << of.name;
    }
};

/// Operations that do not complete by themselves.
const awaited_operation cases[] = {
    {"read_some",
     [](objects& o) -> task<> {
         char bytes[8];
         co_await o.a.async_read_some(asio::buffer(bytes), use_coil);
     }},
    {"read",
     [](objects& o) -> task<> {
         char bytes[8];
         asio::write(o.b, asio::buffer("1", 1));
         co_await asio::async_read(o.a, asio::buffer(bytes), use_coil);
     }},
    {"read_until",
     [](objects& o) -> task<> {
         std::string text;
         asio::write(o.b, asio::buffer("1", 1));
         co_await asio::async_read_until(o.a, asio::dynamic_buffer(text), '\n', use_coil);
     }},
    {"write",
     [](objects& o) -> task<> {
         const std::vector<char> large(std::size_t{8} << 20);
         co_await asio::async_write(o.a, asio::buffer(large), use_coil);
     }},
    {"wait_readable",
     [](objects& o) -> task<> { co_await o.a.async_wait(stream::socket::wait_read, use_coil); }},
    {"timer", [](objects& o) -> task<> { co_await o.timer.async_wait(use_coil); }},
    {"accept",
     [](objects& o) -> task<> { static_cast<void>(co_await o.acceptor.async_accept(use_coil)); }},
    {"signal",
     [](objects& o) -> task<> { static_cast<void>(co_await o.signals.async_wait(use_coil)); }},
};

class UseCoilOperation : public testing::TestWithParam<awaited_operation> {};

task<bool> is_cancelled(operation start, objects& o) {
    try {
        co_await start(o);
    } catch (const std::system_error& e) {
        co_return e.code() == std::errc::operation_canceled;
    }
    co_return false;
}

TEST_P(UseCoilOperation, IsStoppedByACoroutineOfItsContext) {
    const auto work = [](operation start, objects& o) -> task<bool> {
        inplace_stop_source source;
        auto waits = spawn(is_cancelled(start, o), source.get_token());
        co_await sleep_for(5ms);
        source.request_stop();
        co_return co_await std::move(waits);
    };
    objects o;
    EXPECT_TRUE(coil::run(work(GetParam().start, o)));
}

TEST_P(UseCoilOperation, IsStoppedByAnotherThread) {
    objects o;
    inplace_stop_source source;
    io_context ctx;
    auto waits = ctx.spawn(is_cancelled(GetParam().start, o), source.get_token());
    ctx.start();
    std::this_thread::sleep_for(5ms);
    source.request_stop();
    EXPECT_TRUE(waits.get());
    ctx.join();
}

TEST_P(UseCoilOperation, IsNotStartedByAStoppedTask) {
    objects o;
    inplace_stop_source source;
    source.request_stop();
    EXPECT_TRUE(coil::run(is_cancelled(GetParam().start, o), source.get_token()));
}

TEST_P(UseCoilOperation, HasATimeLimit) {
    const auto work = [](operation start, objects& o) -> task<> {
        try {
            co_await timeout(start(o), 5ms);
            ADD_FAILURE() << "the limit did not expire";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::timed_out);
        }
    };
    objects o;
    coil::run(work(GetParam().start, o));
}

TEST_P(UseCoilOperation, EndsWithItsContext) {
    objects o;
    {
        io_context ctx;
        ctx.co_spawn(GetParam().start(o));
        ctx.co_spawn([]() -> task<> {
            co_await sleep_for(2ms); // the operation has started by then
            this_context().stop();
        });
        ctx.run();
    }
    // The objects can still be used: nothing in them refers to the context or the frame.
    asio::error_code ignored;
    o.b.write_some(asio::buffer("2", 1), ignored);
    char byte = 0;
    o.a.read_some(asio::buffer(&byte, 1), ignored);
}

INSTANTIATE_TEST_SUITE_P(All, UseCoilOperation, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(UseCoil, AStoppedReadReturnsWhatItHasRead) {
    const auto work = [](objects& o) -> task<> {
        inplace_stop_source source;
        const auto read = [](objects& from) -> task<std::pair<asio::error_code, std::size_t>> {
            char bytes[8];
            const auto [error, n] =
                co_await asio::async_read(from.a, asio::buffer(bytes), use_coil_as_tuple);
            co_return {error, n};
        };
        auto waits = spawn(read(o), source.get_token());
        asio::write(o.b, asio::buffer("123", 3));
        co_await yield();
        while (o.a.available() != 0) {
            co_await sleep_for(1ms);
        }
        source.request_stop();
        const auto [error, n] = co_await std::move(waits);
        EXPECT_EQ(error, asio::error::operation_aborted);
        EXPECT_EQ(n, 3U);
    };
    objects o;
    coil::run(work(o));
}

TEST(UseCoil, ALosingOperationIsCancelledAndTheObjectRemainsUsable) {
    const auto work = [](objects& o) -> task<> {
        char bytes[8];
        for (int i = 0; i < 20; ++i) {
            const auto first = co_await when_any(o.a.async_read_some(asio::buffer(bytes), use_coil),
                                                 sleep_for(1ms));
            EXPECT_EQ(first.index, 1U);
        }
        asio::write(o.b, asio::buffer("123", 3));
        EXPECT_EQ(co_await o.a.async_read_some(asio::buffer(bytes), use_coil), 3U);
    };
    objects o;
    coil::run(work(o));
}

/// The operation completes on Asio's thread at about the time at which its context ends.
TEST(UseCoil, TheEndOfAContextRacesWithACompletion) {
    objects o;
    std::minstd_rand random(1);
    const auto reads = [](objects& from) -> task<> {
        std::vector<char> bytes(1024); // on the heap, where AddressSanitizer detects late writes
        for (;;) {
            co_await from.a.async_read_some(asio::buffer(bytes), use_coil);
        }
    };
    for (int i = 0; i < coil_test::rounds(300, 10000); ++i) {
        io_context ctx;
        ctx.co_spawn(reads(o));
        ctx.start();
        const int writes = static_cast<int>(random() % 30);
        for (int j = 0; j < writes; ++j) {
            asio::write(o.b, asio::buffer("1234", 4));
        }
        ctx.stop();
        ctx.join();
    }
}

/// A stop from another thread races with a completion. The await either returns the byte or leaves
/// it in the socket; if the byte were lost, the test would not end.
TEST(UseCoil, AStopRacesWithACompletion) {
    objects o;
    io_context ctx;
    ctx.start();
    const auto reads = [](objects& from) -> task<bool> {
        std::vector<char> bytes(16);
        try {
            co_await from.a.async_read_some(asio::buffer(bytes), use_coil);
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
            co_return false;
        }
        co_return true;
    };
    for (int i = 0; i < coil_test::rounds(1000, 100000); ++i) {
        inplace_stop_source source;
        auto handle = ctx.spawn(reads(o), source.get_token());
        asio::write(o.b, asio::buffer("1", 1));
        source.request_stop();
        if (!handle.get()) {
            char byte = 0;
            EXPECT_EQ(asio::read(o.a, asio::buffer(&byte, 1)), 1U);
        }
    }
    ctx.stop();
    ctx.join();
}

TEST(UseCoil, AHandlerThatAsioDestroysEndsTheAwait) {
    const auto work = [](std::unique_ptr<asio::io_context> io) -> task<bool> {
        const auto waits = [](asio::io_context& on) -> task<bool> {
            try {
                co_await asio::post(on, use_coil);
            } catch (const std::system_error& e) {
                co_return e.code() == std::errc::operation_canceled;
            }
            co_return false;
        };
        auto handle = spawn(waits(*io));
        co_await yield();
        io.reset(); // it never ran
        co_return co_await std::move(handle);
    };
    EXPECT_TRUE(coil::run(work(std::make_unique<asio::io_context>())));
}

TEST(UseCoil, AnAwaitOutlivesItsAsioThread) {
    const auto work = []() -> task<std::error_code> {
        const auto waits = [](objects& o) -> task<std::error_code> {
            try {
                co_await o.timer.async_wait(use_coil);
            } catch (const std::system_error& e) {
                co_return e.code();
            }
            co_return {};
        };
        auto o = std::make_unique<objects>();
        auto handle = spawn(waits(*o));
        co_await yield(); // it has started
        o.reset();        // the timer aborts the wait; its handler might never run
        co_return co_await std::move(handle);
    };
    EXPECT_EQ(coil::run(work()), std::errc::operation_canceled);
}

/// The network resets the connection after a number of bytes.
TEST(UseCoil, ACutConnectionIsReported) {
    objects o;
    const auto serve = [](tcp::acceptor& acceptor) -> task<> {
        for (;;) {
            tcp::socket peer = co_await acceptor.async_accept(use_coil);
            const std::string text(1000000, 'x');
            co_await asio::async_write(peer, asio::buffer(text), use_coil_as_tuple);
        }
    };
    io_context server;
    server.co_spawn(serve(o.acceptor));
    server.start();
    const auto read = [](asio_thread& io, std::uint16_t port) -> task<> {
        tcp::socket socket(io.context());
        co_await socket.async_connect({asio::ip::address_v4::loopback(), port}, use_coil);
        std::vector<char> bytes(1000000);
        co_await asio::async_read(socket, asio::buffer(bytes), use_coil);
    };
    for (const std::uint64_t limit : {0, 100000, 500000, 900000}) {
        adapter_test::cutting_proxy proxy(o.acceptor.local_endpoint().port());
        proxy.cut_after(limit);
        EXPECT_THROW(coil::run(read(o.io, proxy.port())), std::system_error) << limit;
    }
    coil::run(read(o.io, o.acceptor.local_endpoint().port()));
    server.stop();
    server.join();
}

std::size_t resident_pages() {
    std::size_t total = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident;
}

TEST(UseCoil, ManyOperationsDoNotLeak) {
    const auto transfer = [](objects& o, int times) -> task<> {
        char byte = 'x';
        for (int i = 0; i < times; ++i) {
            co_await when_all(asio::async_write(o.a, asio::buffer(&byte, 1), use_coil),
                              asio::async_read(o.b, asio::buffer(&byte, 1), use_coil));
        }
    };
    objects o;
    coil::run(transfer(o, 2000));
    const std::size_t before = resident_pages();
    coil::run(transfer(o, coil_test::rounds(20000, 100000)));
    if (!coil_test::sanitized) { // AddressSanitizer keeps freed memory, and finds leaks itself
        EXPECT_LT(resident_pages(), before + 256);
    }
}

} // namespace
