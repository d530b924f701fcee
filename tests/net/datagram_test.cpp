// net::datagrams, batches, segmentation offload, ECN, timestamps.

#include "support/run.hpp"

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <netinet/ip.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Datagrams : public ::testing::Test {};

net::socket bound(std::string_view ip = "127.0.0.1") {
    net::socket s = net::socket::create_udp(net::endpoint(ip, 0).family());
    s.bind({ip, 0}).value();
    return s;
}

std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const_buffer buffer(std::string_view s) { return {s.data(), s.size()}; }

/// The datagrams of which a piece consists.
std::vector<std::string> split(std::span<const std::byte> piece, std::size_t segment) {
    std::vector<std::string> parts;
    const std::string all = text(piece);
    if (segment == 0) {
        return {all};
    }
    for (std::size_t at = 0; at < all.size(); at += segment) {
        parts.push_back(all.substr(at, segment));
    }
    return parts;
}

TEST_F(Datagrams, ComeInPooledBuffersWithTheirSender) {
    coil::run([]() -> task<> {
        const net::socket server = bound();
        net::socket client = bound();
        buffer_pool pool({.buffers = 8, .buffer_size = 1024, .incremental = false});
        net::datagram_stream incoming = net::datagrams(server, pool);
        for (const std::string word : {"one", "", "three"}) {
            EXPECT_EQ(co_await client.send_to(buffer(word), server.local_endpoint()),
                      static_cast<int>(word.size()));
            const net::datagram d = co_await incoming.next();
            EXPECT_TRUE(d);
            EXPECT_EQ(text(d.bytes()), word);
            EXPECT_EQ(d.peer(), client.local_endpoint());
            EXPECT_EQ(d.info().ecn, -1);
            EXPECT_EQ(d.info().segment_size, 0U);
            EXPECT_FALSE(d.truncated());
        }
        const std::string large(2000, 'x');
        EXPECT_EQ(co_await client.send_to(buffer(large), server.local_endpoint()), 2000);
        const net::datagram d = co_await incoming.next();
        EXPECT_TRUE(d.truncated());
        const net::datagram late = co_await timeout(incoming.next(), 10ms);
        EXPECT_FALSE(late);
        EXPECT_EQ(late.result(), -ETIMEDOUT);
    }());
}

TEST_F(Datagrams, EcnAndTimestampsAreReported) {
    for (const std::string_view ip : {"127.0.0.1", "::1"}) {
        coil::run([](std::string_view ip) -> task<> {
            const net::socket server = bound(ip);
            const net::socket client = bound(ip);
            EXPECT_EQ(net::enable(server, {.ecn = true, .timestamps = true}), 0);
            buffer_pool pool({.buffers = 8, .buffer_size = 1024, .incremental = false});
            net::datagram_stream incoming = net::datagrams(server, pool);
            for (const int ecn : {0, 1, 2, 3}) {
                const auto before = std::chrono::system_clock::now();
                EXPECT_EQ(co_await net::send_datagram(
                              client, buffer("x"), {.peer = server.local_endpoint(), .ecn = ecn}),
                          1);
                const net::datagram d = co_await incoming.next();
                EXPECT_EQ(d.info().ecn, ecn) << ip;
                EXPECT_GE(d.info().time, before - 1s);
                EXPECT_LE(d.info().time, std::chrono::system_clock::now() + 1s);
            }
            // A batch sends each datagram with its own ECN bits.
            net::datagram_batch batch(4, 64);
            EXPECT_TRUE(batch.add(buffer("ab"), {.peer = server.local_endpoint(), .ecn = 2}));
            EXPECT_EQ(co_await net::send_batch(client, batch), 1);
            EXPECT_EQ((co_await incoming.next()).info().ecn, 2);
        }(ip));
    }
}

TEST_F(Datagrams, SegmentsAreSentAndReceivedAsOnePiece) {
    coil::run([]() -> task<> {
        const net::socket server = bound();
        const net::socket client = bound();
        if (net::enable(server, {.segments = true}) < 0) {
            co_return; // the kernel has no UDP_GRO
        }
        std::string data;
        for (int i = 0; i < 10; ++i) {
            data += std::string(100, static_cast<char>('a' + i));
        }
        data += "tail";
        EXPECT_EQ(co_await net::send_datagram(
                      client, buffer(data), {.peer = server.local_endpoint(), .segment_size = 100}),
                  static_cast<int>(data.size()));
        net::datagram_batch batch(4, 65535);
        std::vector<std::string> got;
        while (got.size() < 11) {
            EXPECT_GT(co_await net::receive_batch(server, batch), 0);
            for (std::size_t i = 0; i < batch.size(); ++i) {
                EXPECT_EQ(batch.info(i).peer, client.local_endpoint());
                EXPECT_FALSE(batch.truncated(i));
                for (std::string& part : split(batch.bytes(i), batch.info(i).segment_size)) {
                    got.push_back(std::move(part));
                }
            }
        }
        EXPECT_EQ(got.size(), 11U);
        EXPECT_EQ(got[3], std::string(100, 'd'));
        EXPECT_EQ(got[10], "tail");
        EXPECT_EQ(co_await net::send_datagram(client, {data.data(), 1}, {.segment_size = 70000}),
                  -EMSGSIZE);
    }());
}

TEST_F(Datagrams, ABatchIsSentBackAsItCame) {
    coil::run([]() -> task<> {
        const net::socket server = bound();
        const net::socket client = bound();
        net::datagram_batch out(16, 32);
        for (int i = 0; i < 16; ++i) {
            EXPECT_TRUE(out.add(buffer(std::string(static_cast<std::size_t>(i), 'y')),
                                {.peer = server.local_endpoint()}));
        }
        EXPECT_FALSE(out.add(buffer("z"), {})); // it is full
        EXPECT_EQ(co_await net::send_batch(client, out), 16);
        EXPECT_EQ(out.size(), 16U);
        net::datagram_batch echo(5, 32);
        for (std::size_t done = 0; done < 16;) {
            const int n = co_await net::receive_batch(server, echo);
            EXPECT_GT(n, 0);
            EXPECT_LE(n, 5);
            EXPECT_EQ(co_await net::send_batch(server, echo), n);
            done += static_cast<std::size_t>(n);
        }
        net::datagram_batch in(32, 32);
        std::size_t next = 0;
        while (next < 16) {
            EXPECT_GT(co_await net::receive_batch(client, in), 0);
            for (std::size_t i = 0; i < in.size(); ++i) {
                EXPECT_EQ(in.bytes(i).size(), next++);
            }
        }
        in.clear();
        EXPECT_EQ(in.size(), 0U);
        EXPECT_FALSE(in.add(buffer(std::string(33, 'x')), {})); // longer than a piece
    }());
}

TEST_F(Datagrams, G3_AWaitForABatchIsCancelled) {
    coil::run([]() -> task<> {
        const net::socket server = bound();
        net::datagram_batch batch(4, 32);
        EXPECT_EQ(co_await timeout(net::receive_batch(server, batch), 10ms), -ETIMEDOUT);
        // Datagrams that keep arriving do not prevent a cancellation.
        auto flood = [](const net::socket& s) -> task<> {
            net::datagram_batch self(4, 32);
            self.add(buffer("x"), {.peer = s.local_endpoint()});
            for (;;) {
                if (co_await net::send_batch(s, self) < 0 ||
                    co_await net::receive_batch(s, self) < 0) {
                    co_return;
                }
            }
        };
        auto flooding = spawn(flood(server));
        co_await sleep_for(20ms);
        flooding.cancel();
        co_await flooding;
    }());
}

} // namespace
