// Use each result as soon as it is available: the fastest task first.
#include <coil/coil.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

task<std::string> fetch(std::string mirror, std::chrono::milliseconds delay) {
    co_await sleep_for(delay);
    if (mirror == "broken") {
        throw std::runtime_error("the mirror is broken");
    }
    co_return mirror;
}

task<> co_main() {
    task_group<std::string> mirrors{{.max_children = 8}};
    co_await mirrors.spawn(fetch("slow", 60ms)); // waits while 8 run
    co_await mirrors.spawn(fetch("fast", 1ms));
    co_await mirrors.spawn(fetch("broken", 30ms));
    for (bool more = true; more;) {
        try {
            const auto mirror = co_await mirrors.next();
            more = mirror.has_value();
            std::printf("%s\n", more ? mirror->c_str() : "all done");
        } catch (const std::runtime_error& e) {
            std::printf("%s\n", e.what()); // the others continue
        }
    }
}

int main() { coil::run(co_main()); }
