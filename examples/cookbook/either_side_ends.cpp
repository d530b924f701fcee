// The reader, or a task that closes the queue, ends a session. What is queued is still sent.
#include <coil/coil.hpp>

using namespace coil;

task<> read_lines(net::socket& peer, channel<std::string>& queue) {
    buffered_reader reader{peer};
    auto lines = reader.lines(4096);
    try {
        while (const auto line = co_await lines.next()) {
            co_await queue.send("you said " + std::string(*line) + "\n");
        }
        queue.close();
    } catch (const std::system_error&) {
        queue.close(); // receiving failed, or another task has closed the queue already
    }
    co_await event().wait(); // until when_any cancels this: the writer has sent the rest
}

task<> write_lines(net::socket& peer, channel<std::string>& queue) {
    while (const auto line = co_await queue.recv()) {
        (co_await timeout(peer.send_all(*line), std::chrono::seconds(5))).value(); // or throws
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
    queue.close(); // or the client closes its side
    pipe_end output(::dup(1));
    co_await copy(ours, output); // until the session has ended
}

int main() { coil::run(co_main()); }
