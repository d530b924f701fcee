// Several coroutines answer on one connection: answers of one moment go out with one send.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

task<> answer(shared_writer<net::socket&>& out, std::string request,
              counting_semaphore<>::guard /*place*/) {
    co_await sleep_for(request == "slow" ? 20ms : 0ms); // no answer waits for another one
    co_await out.write("answer to " + request + "\n");  // whole, not mixed with another
}

task<> serve(net::socket peer) {
    shared_writer out{peer}; // before the scope, because it must outlive the answers
    counting_semaphore places{100};
    scope answers;
    buffered_reader in{peer};
    auto lines = in.lines(4096);
    while (const auto line = co_await lines.next()) {
        answers.spawn(answer(out, std::string(*line), co_await places.acquire_guard()));
    }
    co_await answers.join();
}

task<> co_main() {
    auto [client, server] = net::socket::pair();
    co_spawn(serve(std::move(server)));
    co_await client.send_all("slow\none\ntwo\n");
    co_await client.shutdown_write();
    buffered_reader answers{client};
    auto lines = answers.lines();
    while (const auto line = co_await lines.next()) {
        std::printf("%.*s\n", static_cast<int>(line->size()), line->data());
    }
}

int main() { coil::run(co_main()); }
