// Say goodbye and close: send what is queued, half-close, and wait until the peer has closed.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

/// Returns 0 when the peer has ended its side too, or -errno.
task<io_result> say_goodbye(net::socket& peer, channel<std::string>& queue) {
    queue.close(); // refuses further lines; queued ones can still be received
    while (const auto line = co_await queue.recv()) {
        if (const io_result sent = co_await peer.send_all(*line); sent < 0) {
            co_return sent;
        }
    }
    io_result n = co_await peer.shutdown_write(); // the peer's recv() returns 0 after the last line
    char unread[512];
    while (n >= 0 && (n = co_await peer.recv(unread)) > 0) {
    }
    co_return n;
}

task<> read_to_the_end(net::socket from) {
    char text[100];
    const int n = co_await from.recv_all(text); // returns at the end of the stream
    std::printf("%.*s", n, text);
} // closes the socket

task<> co_main() {
    auto [ours, theirs] = net::socket::pair();
    channel<std::string> queue(8);
    co_await queue.send("goodbye\n");
    co_spawn(read_to_the_end(std::move(theirs)));
    const int end = co_await timeout(say_goodbye(ours, queue), 5s); // a limit for all of it
    std::puts(end == 0 ? "the peer has closed" : "closed without the peer"); // -ETIMEDOUT, ...
}

int main() { coil::run(co_main()); }
