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

task<int> serve_once(tls::basic_stream<damaging> s, std::size_t& seen) {
    int result = co_await s.accept();
    char buf[64];
    if (result == 0) {
        result = co_await s.read_some(buf);
    }
    if (result > 0) {
        result = co_await s.write_some("answer");
    }
    seen = s.transport().seen();
    co_return result;
}

task<int> ask_once(tls::basic_stream<damaging> s, std::size_t& seen) {
    int result = co_await s.handshake("example.test");
    char buf[64];
    if (result == 0) {
        result = co_await s.write_some("question");
    }
    if (result > 0) {
        result = co_await s.read_some(buf);
    }
    seen = s.transport().seen();
    co_return result;
}

constexpr std::size_t nowhere = ~std::size_t{0};

TEST(TlsDamage, EveryByteOfAHandshakeChangedOnce) {
    auto main = [](const tls::context& client, const tls::context& server, std::size_t at_client,
                   std::size_t at_server, std::size_t& seen) -> task<std::pair<int, int>> {
        auto [a, b] = net::socket::pair();
        std::size_t by_client = 0;
        std::size_t by_server = 0;
        auto serving = coil::spawn(
            serve_once(tls::basic_stream(damaging(std::move(b), at_server), server), by_server));
        auto asking = coil::spawn(
            ask_once(tls::basic_stream(damaging(std::move(a), at_client), client), by_client));
        // A record that has become longer waits for bytes that do not come.
        const int asked = co_await timeout(std::move(asking), 200ms);
        const int served = co_await timeout(std::move(serving), 200ms);
        seen = at_client == nowhere ? by_server : by_client;
        co_return std::pair(asked, served);
    };
    const tls::context client = client_context();
    const tls::context server = server_context();
    std::size_t size = 0;
    EXPECT_EQ(coil::run(main(client, server, nowhere, nowhere, size)), std::pair(6, 6));
    const std::size_t step = coil_test::long_run() ? 1 : 23;
    for (const bool damage_client : {true, false}) {
        coil::run(main(client, server, damage_client ? 0 : nowhere, nowhere, size));
        for (std::size_t at = 0; at < 700; at += step) {
            const auto [asked, served] = coil::run(main(
                client, server, damage_client ? at : nowhere, damage_client ? nowhere : at, size));
            // Padding and unknown extensions of the first messages are the only bytes without
            // effect on the side that reads them; the other side notices, as both hash every
            // message.
            EXPECT_TRUE(asked < 0 || served < 0 || size <= at) << at;
        }
    }
}

} // namespace
