// The table in docs/guide/errors.md, "What each call returns": timeouts, stops and the end of data.

#include "compose/combinations.hpp"

#include <coil/fs/read_file.hpp>
#include <coil/net/connect.hpp>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>

using namespace coil;
using namespace compose_test;
using coil_test::socket_pair;

namespace {

/// The outcome of an await, as the table names it.
template <class T>
task<std::string> outcome(task<T> work) {
    try {
        if constexpr (std::is_same_v<T, io_result>) {
            const io_result r = co_await std::move(work);
            co_return r < 0 ? std::string(::strerrorname_np(-r)) : std::to_string(r);
        } else if constexpr (std::is_same_v<T, net::socket>) {
            const net::socket s = co_await std::move(work);
            co_return s ? "socket" : "error " + std::to_string(s.error().value());
        } else if constexpr (std::is_void_v<T>) {
            co_await std::move(work);
            co_return "void";
        } else {
            (void)co_await std::move(work);
            co_return "value";
        }
    } catch (const std::system_error& e) {
        co_return "throws " + std::to_string(e.code().value());
    }
}

const std::string times_out = "throws " + std::to_string(ETIMEDOUT);
const std::string is_canceled = "throws " + std::to_string(ECANCELED);

/// Checks the outcome with a timeout of 1 ms, and that of a task asked to stop after 1 ms.
template <class Make>
task<> expect(const char* what, Make make, std::string on_limit, std::string on_stop) {
    auto limited = [](Make m) { return m(true); };
    EXPECT_EQ(co_await outcome(limited(make)), on_limit) << what;
    auto stopped = spawn(outcome(make(false)));
    co_await sleep_for(1ms);
    stopped.cancel();
    EXPECT_EQ(co_await stopped, on_stop) << what;
}

template <class T, class Op>
task<T> limited_or_not(bool limit, Op op) {
    if (limit) {
        co_return co_await timeout(op(), 1ms);
    }
    co_return co_await op();
}

class Outcomes : public ::testing::Test {
protected:
    listening_context ctx_;
};

TEST_F(Outcomes, AwaitsOfAnIoResultReturnErrors) {
    const socket_pair s;
    net::socket peer(::dup(s.a));
    auto main = [](int fd, net::socket& sock) -> task<> {
        char buf[8];
        const auto op = [&] { return io::recv(fd, buf); };
        co_await expect(
            "recv", [&](bool l) { return limited_or_not<io_result>(l, op); }, "ETIMEDOUT",
            "ECANCELED");
        const auto chain = [&] { return io::nop() && io::recv(fd, buf); };
        co_await expect(
            "chain", [&](bool l) { return limited_or_not<io_result>(l, chain); }, "ETIMEDOUT",
            "ECANCELED");
        const auto all = [&] { return sock.recv_all(buf); };
        co_await expect(
            "recv_all", [&](bool l) { return limited_or_not<io_result>(l, all); }, "ETIMEDOUT",
            "ECANCELED");
        const auto nap = [] { return sleep_for(1h); };
        co_await expect(
            "sleep", [&](bool l) { return limited_or_not<io_result>(l, nap); }, "ETIMEDOUT",
            "ECANCELED");
        net::acceptor ac{net::inet_address{"127.0.0.1", 0}};
        const auto accept = [&] { return ac.accept(); };
        co_await expect(
            "accept", [&](bool l) { return limited_or_not<net::socket>(l, accept); },
            "error " + std::to_string(ETIMEDOUT), "error " + std::to_string(ECANCELED));
    };
    ctx_.run(main(s.b, peer));
}

TEST_F(Outcomes, AwaitsOfOtherValuesThrow) {
    auto main = []() -> task<> {
        channel<int> empty(1);
        const auto recv = [&] { return empty.recv(); };
        co_await expect(
            "channel", [&](bool l) { return limited_or_not<std::optional<int>>(l, recv); },
            times_out, is_canceled);
        mutex m;
        const auto held = co_await m.lock_guard();
        const auto lock = [&] { return m.lock(); };
        auto locks = [](bool limit, auto f) -> task<> {
            if (limit) {
                co_await timeout(f(), 1ms);
            } else {
                co_await f();
            }
        };
        co_await expect("mutex", [&](bool l) { return locks(l, lock); }, times_out, is_canceled);
        int cancelled = 0;
        const auto waiting = [&] { return waits(cancelled); };
        co_await expect(
            "task", [&](bool l) { return limited_or_not<int>(l, waiting); }, times_out,
            is_canceled);
        const auto both = [&] { return when_all(waits(cancelled), waits(cancelled)); };
        auto combined = [](bool limit, auto f) -> task<> {
            if (limit) {
                (void)co_await timeout(f(), 1ms);
            } else {
                (void)co_await f();
            }
        };
        co_await expect(
            "when_all", [&](bool l) { return combined(l, both); }, times_out, is_canceled);
        auto group_waits = [](bool limit) -> task<> {
            task_group<int> g;
            int n = 0;
            g.spawn(waits(n));
            if (limit) {
                (void)co_await timeout(g.next(), 1ms);
            } else {
                (void)co_await g.next();
            }
        };
        co_await expect("task_group", group_waits, times_out, is_canceled);
    };
    ctx_.run(main());
}

TEST_F(Outcomes, TheEndOfTheData) {
    const socket_pair s;
    ASSERT_EQ(::shutdown(s.a, SHUT_WR), 0);
    auto main = [](int fd) -> task<> {
        char buf[8];
        EXPECT_EQ(co_await io::recv(fd, buf), 0);
        channel<int> closed(1);
        closed.close();
        EXPECT_EQ(co_await closed.recv(), std::nullopt);
        auto none = []() -> async_generator<int> { co_return; }();
        EXPECT_FALSE(co_await none.next());
        task_group<int> group;
        EXPECT_EQ(co_await group.next(), std::nullopt);
        auto missing = []() -> task<std::string> { co_return co_await fs::read_file("/no/such"); };
        try {
            co_await missing();
            ADD_FAILURE() << "did not throw";
        } catch (const std::filesystem::filesystem_error& e) {
            EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
        }
    };
    ctx_.run(main(s.b));
}

} // namespace
