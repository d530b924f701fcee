// Limit the bandwidth of a connection, and count its bytes.
#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

task<> send_much(net::socket to) {
    co_await to.send_all(std::string(100'000, 'x')); // waits while the reader is slow
}

task<> receive_slowly(net::socket from) {
    const auto start = context_clock::now(); // in a world: virtual time
    counting_stream all{std::move(from)};
    rate_limited slow{all, {.read = {.per_second = 10'000, .burst = 10'000}}};
    char buf[4096];
    while ((co_await slow.read_some(buf)).value() > 0) {
    }
    std::printf("%d bytes in %d seconds\n", static_cast<int>(all.bytes_read()),
                static_cast<int>((context_clock::now() - start) / 1s));
}

task<> co_main() {
    auto [ours, theirs] = net::socket::pair();
    co_await when_all(send_much(std::move(theirs)), receive_slowly(std::move(ours)));
}

int main() {
    sim::world w(1);
    w.host("server").co_spawn(co_main());
    w.run();
}
