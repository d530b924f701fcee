// What a timeout returns: -ETIMEDOUT if the work returns an io_result, also for a chain, a task and
// a nested timeout; -ECANCELED only after a stop. A timeout around an io_result never throws.

#include "compose/combinations.hpp"

#include <coil/net/acceptor.hpp>
#include <coil/net/socket.hpp>

#include <system_error>
#include <vector>

using namespace coil;
using namespace compose_test;
using coil_test::pipe_pair;

namespace {

class LimitResult : public ::testing::Test {
protected:
    pipe_pair pipe_;
    listening_context ctx_;
};

task<io_result> reads_twice(int fd) {
    char c = 0;
    const io_result first = co_await io::read(fd, {&c, 1});
    if (first < 0) {
        co_return first;
    }
    co_return co_await io::read(fd, {&c, 1});
}

/// Returns normally when it is stopped.
task<io_result> returns_when_stopped() {
    co_await sleep_for(1h);
    co_return io_result(7);
}

TEST_F(LimitResult, ATaskOfAnIoResultTimesOutWithoutAnException) {
    auto main = [](int fd) -> task<> {
        EXPECT_EQ(co_await timeout(reads_twice(fd), 2ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(returns_when_stopped(), 2ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(spawn(returns_when_stopped()), 2ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(sleep_for(1h), 2ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout_at(reads_twice(fd), std::chrono::steady_clock::now()),
                  -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(shield(sleep_for(3ms)), 1ms), -ETIMEDOUT);
    };
    ctx_.run(main(pipe_.in));
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(LimitResult, TheNestedLimitThatExpiresIsReported) {
    auto inner = [](int fd, std::chrono::nanoseconds limit) -> task<io_result> {
        co_return co_await timeout(reads_twice(fd), limit);
    };
    auto throws = []() -> task<io_result> {
        int cancelled = 0;
        co_await timeout(obeys(cancelled), 1ms);
        co_return io_result(0);
    };
    auto main = [](auto limited, auto complains, int fd) -> task<> {
        EXPECT_EQ(co_await timeout(limited(fd, 1h), 2ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(limited(fd, 2ms), 1h), -ETIMEDOUT);
        EXPECT_EQ(co_await complaint_of([](auto f) -> task<> {
                      co_await timeout(f(), 1h); // the exception of the inner timeout propagates
                  }(complains)),
                  timed_out_text);
    };
    ctx_.run(main(inner, throws, pipe_.in));
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(LimitResult, G12_AnExceptionAfterTheLimitGoesToTheHandler) {
    auto fails = []() -> task<io_result> {
        co_await sleep_for(1h);
        throw std::runtime_error("late");
    };
    auto main = [](auto f) -> task<> { EXPECT_EQ(co_await timeout(f(), 1ms), -ETIMEDOUT); };
    ctx_.run(main(fails));
    ASSERT_EQ(ctx_.heard.size(), 1U);
    EXPECT_EQ(ctx_.heard.front(), "late");
}

TEST_F(LimitResult, AStopIsNeverALimit) {
    auto works = [](int fd, int kind) -> task<int> {
        switch (kind) {
        case 0:
            co_return co_await timeout(reads_twice(fd), 1h);
        case 1:
            co_return co_await timeout(io::nop() && io::poll(fd, POLLIN) && io::nop(), 1h);
        case 2:
            co_return co_await (io::nop() && timeout(io::poll(fd, POLLIN), 1h) && io::nop());
        default:
            co_return co_await timeout(sleep_for(1h), 1h);
        }
    };
    auto main = [](auto f, int fd) -> task<> {
        for (int kind = 0; kind < 4; ++kind) {
            auto handle = spawn(f(fd, kind));
            co_await sleep_for(1ms);
            handle.cancel();
            EXPECT_EQ(co_await handle, -ECANCELED) << kind;
        }
    };
    ctx_.run(main(works, pipe_.in));
}

TEST_F(LimitResult, AFailureInAChainIsNotItsLimit) {
    auto main = [](int fd) -> task<> {
        char c = 0;
        // The second call fails; the timeout of the first has not expired.
        EXPECT_EQ(co_await (timeout(io::nop(), 1h) && io::read(-1, {&c, 1}) && io::nop()),
                  -ECANCELED);
        EXPECT_EQ(co_await (timeout(io::poll(fd, POLLIN), 1ms) && io::nop() && io::nop()),
                  -ETIMEDOUT);
        EXPECT_EQ(co_await hard_link(timeout(io::poll(fd, POLLIN), 1ms), io::nop()), 0);
        EXPECT_EQ(co_await timeout(hard_link(io::nop(), io::poll(fd, POLLIN)), 1ms), -ETIMEDOUT);
    };
    ctx_.run(main(pipe_.in));
}

TEST_F(LimitResult, SocketsReportItAsAnError) {
    auto main = []() -> task<> {
        net::acceptor acceptor(net::inet_address("127.0.0.1", 0));
        const net::socket none = co_await timeout(acceptor.accept(), 1ms);
        EXPECT_FALSE(none);
        EXPECT_EQ(none.error(), std::errc::timed_out);

        net::socket client = net::socket::create_tcp();
        EXPECT_EQ(co_await timeout(client.connect(acceptor.local_address()), 5s), 0);
        net::socket server = co_await timeout(acceptor.accept(), 5s);
        EXPECT_TRUE(server);

        char buf[16];
        EXPECT_EQ(co_await timeout(server.recv(buf), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(server.recv_all(buf), 1ms), -ETIMEDOUT);
        // A peer that does not read.
        const std::vector<char> much(std::size_t{64} << 20U);
        EXPECT_EQ(co_await timeout(server.send_all(much), 20ms), -ETIMEDOUT);
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(LimitResult, G4_AConnectionThatArrivesWithTheLimitIsDelivered) {
    // The accept is asked to stop, but still returns a connection.
    auto arrives = [](int fd) -> task<net::socket> {
        co_await sleep_for(1h);
        co_return net::socket(::dup(fd));
    };
    auto main = [](auto f, int fd) -> task<> {
        const net::socket accepted = co_await timeout(f(fd), 1ms);
        EXPECT_TRUE(accepted);
    };
    ctx_.run(main(arrives, pipe_.in));
}

} // namespace
