// One task reads, another writes. When the reader has ended, the writer sends what is queued.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

task<> read_requests(net::socket& peer, channel<std::string>& answers) {
    buffered_reader reader{peer};
    auto lines = reader.lines(4096);
    while (const auto line = co_await lines.next()) {
        co_await answers.send("answer to " + std::string(*line) + "\n"); // waits while it is full
    }
    answers.close(); // the writer ends when it has sent the rest
}

task<> write_answers(net::socket& peer, channel<std::string>& answers) {
    while (const auto answer = co_await answers.recv()) {
        (co_await timeout(peer.send_all(*answer), 5s)).value(); // throws: stops the reader
    }
}

task<> session(net::socket peer) {
    channel<std::string> answers(16);
    co_await when_all(read_requests(peer, answers), write_answers(peer, answers));
}

task<> co_main() {
    auto [ours, theirs] = net::socket::pair();
    co_spawn(session(std::move(theirs)));
    co_await ours.send_all("one\ntwo\n");
    co_await ours.shutdown_write(); // the end of the stream, for the session's reader
    char buf[256];
    const int n = co_await ours.recv_all(buf); // until the session has closed its socket
    std::printf("%.*s", n, buf);
}

int main() { coil::run(co_main()); }
