// Ask a second server when the first is slow, and take the first answer.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

task<std::string> ask(std::string server, std::chrono::milliseconds takes) {
    if (co_await sleep_for(takes) < 0) {
        std::printf("%s: cancelled\n", server.c_str());
    }
    co_return "answer of " + server;
}

task<std::string> ask_later(std::chrono::milliseconds delay, std::string server,
                            std::chrono::milliseconds takes) {
    co_await sleep_for(delay);
    co_return co_await ask(server, takes);
}

task<> co_main() {
    // The loser is cancelled, and has ended when this returns.
    const auto [index, answer] = co_await when_any(ask("a", 10s), ask_later(10ms, "b", 5ms));
    std::visit([](const std::string& text) { std::printf("%s\n", text.c_str()); }, answer);
}

int main() { coil::run(co_main()); }
