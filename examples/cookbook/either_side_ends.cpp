// The reader, or a task that closes the queue, ends a session. What is queued is still sent.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

task<> read_lines(net::socket& peer, channel<std::string>& queue) {
    buffered_reader reader{peer};
    auto lines = reader.lines(4096);
    for (auto line = co_await lines.next(); line && *line != "quit"; line = co_await lines.next()) {
        co_await queue.send("you said " + std::string(*line) + "\n");
    }
    queue.close();
    co_await event().wait(); // until when_any cancels this: the writer has sent the rest
}

task<> write_lines(net::socket& peer, channel<std::string>& queue) {
    while (const auto line = co_await queue.recv()) {
        (co_await timeout(peer.send_all(*line), 5s)).value(); // throws: ends the session
    }
}

task<> session(net::socket peer, channel<std::string>& queue) {
    co_await when_any(write_lines(peer, queue), read_lines(peer, queue));
}

task<> co_main() {
    auto [ours, theirs] = net::socket::pair();
    channel<std::string> queue(16);
    co_spawn(session(std::move(theirs), queue));
    co_await queue.send("the server stops\n");
    queue.close(); // or the client sends "quit", or closes its side
    char buf[256];
    std::printf("%.*s", int(co_await ours.recv_all(buf)), buf); // until the session has ended
}

int main() { coil::run(co_main()); }
