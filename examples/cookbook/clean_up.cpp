// Clean up with co_await, however the work ends. (C++ has no asynchronous destructors.)
#include <coil/coil.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>

using namespace coil;
using namespace std::chrono_literals;

task<> say_goodbye() {
    co_await sleep_for(1ms); // a last message, a commit, a close
    std::printf("cleaned up\n");
}

task<> with_cleanup(task<> work, task<> cleanup) {
    std::exception_ptr error;
    try {
        co_await std::move(work);
    } catch (...) {
        error = std::current_exception(); // co_await is not allowed in a handler
    }
    // The shield blocks stop requests of this task; the timeout limits the clean-up.
    co_await shield(timeout(std::move(cleanup), 1s));
    if (error) {
        std::rethrow_exception(error);
    }
}

task<> fails() {
    co_await sleep_for(1ms);
    throw std::runtime_error("out of luck");
}

int main() try {
    coil::run(with_cleanup(fails(), say_goodbye()));
} catch (const std::exception& e) {
    std::printf("%s\n", e.what());
}
