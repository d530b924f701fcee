// Bytes that are changed on the way, at every offset of a handshake.

#include "tls/support.hpp"

#include <string>
#include <utility>

using namespace coil;
using namespace tls_test;

namespace {

/// Changes one byte of what it receives.
class damaging {
public:
    damaging(net::socket s, std::size_t at) : socket_(std::move(s)), at_(at) {}

    task<io_result> read_some(mutable_buffer to) {
        const int n = co_await socket_.read_some(to);
        if (n > 0 && at_ >= seen_ && at_ < seen_ + static_cast<std::size_t>(n)) {
            static_cast<unsigned char*>(to.data())[at_ - seen_] ^= 0x41;
        }
        seen_ += n > 0 ? static_cast<std::size_t>(n) : 0;
        co_return io_result(n);
    }
    task<io_result> write_some(const_buffer from) { co_return co_await socket_.write_some(from); }
    task<io_result> shutdown_write() { co_return co_await socket_.shutdown_write(); }

    [[nodiscard]] std::size_t seen() const { return seen_; }

private:
    net::socket socket_;
    std::size_t at_;
    std::size_t seen_ = 0;
};

task<io_result> serve_once(tls::basic_stream<damaging> s, std::size_t& seen) {
    int result = co_await s.accept();
    char buf[64];
    if (result == 0) {
        result = co_await s.read_some(buf);
    }
    if (result > 0) {
        result = co_await s.write_some("answer");
    }
    seen = s.transport().seen();
    co_return io_result(result);
}

task<io_result> ask_once(tls::basic_stream<damaging> s, std::size_t& seen) {
    int result = co_await s.handshake("example.test");
    char buf[64];
    if (result == 0) {
        result = co_await s.write_some("question");
    }
    if (result > 0) {
        result = co_await s.read_some(buf);
    }
    seen = s.transport().seen();
    co_return io_result(result);
}

constexpr std::size_t nowhere = ~std::size_t{0};

/// Changes the byte at `at_client` of what the client receives, or at `at_server` of what the
/// server receives. Returns their results, and sets `seen` to the number of bytes that the side
/// with the change has received.
task<std::pair<int, int>> damage_once(const tls::context& client, const tls::context& server,
                                      std::size_t at_client, std::size_t at_server,
                                      std::size_t& seen) {
    auto [a, b] = net::socket::pair();
    std::size_t by_client = 0;
    std::size_t by_server = 0;
    // A record whose length was changed waits for bytes that do not come.
    auto serving = timeout(
        serve_once(tls::basic_stream(damaging(std::move(b), at_server), server), by_server), 10s);
    auto asking = timeout(
        ask_once(tls::basic_stream(damaging(std::move(a), at_client), client), by_client), 10s);
    const auto [served, asked] = co_await when_all(std::move(serving), std::move(asking));
    seen = at_client == nowhere ? by_server : by_client;
    co_return std::pair<int, int>(asked, served);
}

TEST(TlsDamage, EveryByteOfAHandshakeChangedOnce) {
    const tls::context client = client_context();
    const tls::context server = server_context();
    std::size_t size = 0;
    // In a simulated world, where a timeout costs no time.
    const auto run = [&](std::size_t at_client, std::size_t at_server) {
        coil::sim::world w{1};
        auto done = w.host("a").spawn(damage_once(client, server, at_client, at_server, size));
        w.run();
        return done.get();
    };
    EXPECT_EQ(run(nowhere, nowhere), std::pair(6, 6));
    const std::size_t step = coil_test::long_run() ? 1 : 23;
    // The minor version of the first record is obsolete, and receivers ignore it (RFC 8446, 5.1).
    constexpr std::size_t ignored = 2;
    for (std::size_t at = 0; at < 700; at += step) {
        const auto [asked, served] = run(at, nowhere);
        EXPECT_TRUE(asked < 0 || served < 0 || size <= at || at == ignored)
            << "the client's byte " << at;
    }
    for (std::size_t at = 0; at < 700; at += step) {
        const auto [asked, served] = run(nowhere, at);
        EXPECT_TRUE(asked < 0 || served < 0 || size <= at || at == ignored)
            << "the server's byte " << at;
    }
}

} // namespace
