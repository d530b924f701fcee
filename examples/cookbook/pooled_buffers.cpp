// Receive into a pool of buffers: a connection that waits holds no buffer.
#include <coil/coil.hpp>

#include <cstdio>
#include <utility>

using namespace coil;

task<std::size_t> count_bytes(net::socket peer, buffer_pool& pool) {
    std::size_t sum = 0;
    auto incoming = io::recv_multishot(peer.native_handle(), pool); // one request for all data
    while (auto chunk = co_await incoming.next()) {
        sum += chunk->bytes().size(); // destroying `chunk` returns the buffer
    }
    co_return sum;
}

task<> co_main() {
    buffer_pool pool(64, 4096); // for all connections of this context
    net::acceptor ac{net::inet_address("127.0.0.1", 0)};
    net::socket client = net::socket::create_tcp();
    co_await client.connect(ac.local_address());
    auto counted = spawn(count_bytes(co_await ac.accept(), pool));
    for (int i = 0; i < 100; ++i) {
        co_await client.send_all("0123456789");
    }
    co_await client.close();
    std::printf("%zu bytes\n", co_await counted);
}

int main() { coil::run(co_main()); }
