// Await where the language does not allow it: in a destructor, a handler, a plain function.
#include <coil/coil.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>

using namespace coil;
using namespace std::chrono_literals;

task<> send(const char* text) {
    co_await yield(); // any await
    std::printf("%s\n", text);
}

struct session {
    supervisor& background; // outlives the sessions
    explicit session(supervisor& s) : background(s) {}
    session(const session&) = delete;
    ~session() { background.spawn(send("goodbye")); } // starts a task that needs no session
};

task<> co_main() {
    supervisor background;
    std::exception_ptr error;
    try {
        const session one(background);
        co_await sleep_for(1ms);
        throw std::runtime_error("failed");
    } catch (...) {
        error = std::current_exception(); // the await follows after the handler
    }
    if (error) {
        co_await send("the session has failed");
    }
    co_await background.join(5s);
}

int main() { coil::run(co_main()); } // if a context runs on this thread: co_spawn(co_main())
