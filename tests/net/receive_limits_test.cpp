// Limits and early starts of recv_from() and recv_descriptors(): failures are in the io_result.

#include "support/run.hpp"

#include <cerrno>
#include <memory>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using net::endpoint;

namespace {

class ReceiveLimits : public ::testing::Test {};

TEST_F(ReceiveLimits, ALimitOfRecvFromIsInItsResult) {
    auto main = []() -> task<> {
        net::socket s = net::socket::create_udp();
        EXPECT_EQ(s.bind({"127.0.0.1", 0}), 0);
        char buf[8];
        const net::received_from nothing = co_await timeout(s.recv_from(buf), 2ms);
        EXPECT_EQ(nothing.result, -ETIMEDOUT);
        EXPECT_EQ(nothing.peer, endpoint());
        auto receives = [](net::socket& from, mutable_buffer into) -> task<net::received_from> {
            co_return co_await from.recv_from(into);
        };
        EXPECT_EQ((co_await timeout(receives(s, buf), 2ms)).result, -ETIMEDOUT);
        auto limited = coil::spawn([](net::socket& from) -> task<net::received_from> {
            char b[8];
            co_return co_await timeout(from.recv_from(b), 1h);
        }(s));
        co_await yield();
        limited.cancel();
        EXPECT_EQ((co_await limited).result, -ECANCELED);

        EXPECT_EQ(co_await s.send_to("abc", s.local_endpoint()), 3);
        const net::received_from got = co_await timeout(s.recv_from(buf), 1h);
        EXPECT_EQ(got.result, 3);
        EXPECT_EQ(got.peer, s.local_endpoint());
    };
    coil::run(main());
}

TEST_F(ReceiveLimits, ALimitOfRecvDescriptorsIsInItsResult) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        char buf[8];
        const auto nothing = co_await timeout(b.recv_descriptors(buf), 2ms);
        EXPECT_EQ(nothing.result, -ETIMEDOUT);
        EXPECT_TRUE(nothing.descriptors.empty());
        auto receives = [](net::socket& s) -> task<net::received_descriptors> {
            char into[8];
            co_return co_await s.recv_descriptors(into);
        };
        EXPECT_EQ((co_await timeout(receives(b), 2ms)).result, -ETIMEDOUT);

        const std::vector<int> fds{a.native_handle()};
        EXPECT_EQ(co_await a.send_descriptors(fds, "x"), 1);
        const auto got = co_await timeout(b.recv_descriptors(buf), 1h);
        EXPECT_EQ(got.result, 1);
        EXPECT_EQ(got.descriptors.size(), 1U);
    };
    coil::run(main());
}

TEST_F(ReceiveLimits, ALimitKeepsWhatATaskHasReceived) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        const std::vector<int> fds{a.native_handle()};
        EXPECT_EQ(co_await a.send_descriptors(fds, "x"), 1);
        auto receives = [](net::socket& s) -> task<net::received_descriptors> {
            char into[8];
            auto received = co_await s.recv_descriptors(into);
            co_await sleep_for(1h); // the limit expires here
            co_return received;
        };
        const auto got = co_await timeout(receives(b), 2ms);
        EXPECT_EQ(got.result, 1);
        EXPECT_EQ(got.descriptors.size(), 1U);
    };
    coil::run(main());
}

TEST_F(ReceiveLimits, EagerReceivesGiveTheSameResults) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        net::socket udp = net::socket::create_udp();
        EXPECT_EQ(udp.bind({"127.0.0.1", 0}), 0);
        char buf[8];
        char message[8];
        auto descriptors = eager(b.recv_descriptors(buf));
        auto datagram = eager(timeout(udp.recv_from(message), 1h));
        const std::vector<int> fds{a.native_handle()};
        EXPECT_EQ(co_await a.send_descriptors(fds, "x"), 1);
        EXPECT_EQ(co_await udp.send_to("abc", udp.local_endpoint()), 3);
        EXPECT_EQ((co_await descriptors).descriptors.size(), 1U);
        EXPECT_EQ((co_await datagram).result, 3);

        // A waiter of an operation that is destroyed.
        using pending_t = decltype(eager(udp.recv_from(message)));
        auto pending = std::make_unique<pending_t>(udp.recv_from(message));
        auto waits = [](pending_t& op) -> task<io_result> { co_return (co_await op).result; };
        auto waiter = coil::spawn(waits(*pending));
        co_await yield();
        pending.reset();
        EXPECT_EQ(co_await waiter, -ECANCELED);
    };
    coil::run(main());
}

} // namespace
