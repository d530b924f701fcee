// Independent tasks: if one fails, the others continue.
#include <coil/coil.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>

using namespace coil;
using namespace std::chrono_literals;

task<> session(int number) {
    co_await sleep_for(1ms * number);
    if (number == 2) {
        throw std::runtime_error("broken");
    }
    std::printf("session %d is done\n", number);
}

void report(const std::exception_ptr& error, std::string_view name) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        std::printf("%.*s: %s\n", static_cast<int>(name.size()), name.data(), e.what());
    }
}

task<> co_main() {
    supervisor sessions{{.on_failure = report, .max_children = 100}};
    for (int i = 1; i <= 3; ++i) {
        co_await sessions.spawn(session(i), "session"); // waits while there are 100
    }
    co_await sessions.join();
}

int main() { coil::run(co_main()); }
