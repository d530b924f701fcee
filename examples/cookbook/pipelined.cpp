// Answer pipelined requests: one receive and one send for all requests that have arrived.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;

task<int> serve(net::socket peer) {
    int requests = 0;
    buffered_writer out{peer};
    buffered_reader in{flush_before_read{peer, out}}; // sends the answers before it has to wait
    auto lines = in.lines(4096);
    while (const auto line = co_await lines.next()) {
        co_await out.write("you said ");
        co_await out.write(*line);
        co_await out.write("\n");
        ++requests;
        if (*line == "bye") {
            break;
        }
    }
    (co_await out.flush()).value(); // what was written after the last read
    co_return requests;
}

task<> co_main() {
    net::acceptor ac{net::inet_address("127.0.0.1", 0)};
    net::socket client = net::socket::create_tcp();
    co_await client.connect(ac.local_address());
    auto served = spawn(serve(co_await ac.accept()));
    co_await client.send_all("one\ntwo\nbye\n"); // does not wait for answers
    buffered_reader answers{client};
    auto lines = answers.lines();
    while (const auto line = co_await lines.next()) {
        std::printf("%.*s\n", static_cast<int>(line->size()), line->data());
    }
    std::printf("%d requests\n", co_await served);
}

int main() { coil::run(co_main()); }
