#include <coil/coil.hpp>

#include <csignal>

coil::task<> waits_for(coil::event& never) { co_await never.wait(); }
coil::task<> session(coil::event& never) { co_await waits_for(never); }

// For a debugger: stops while two tasks wait.
int main() {
    coil::io_context ctx;
    coil::event never;
    ctx.co_spawn(session(never), "session");
    ctx.co_spawn(waits_for(never));
    ctx.co_spawn([](coil::io_context& here) -> coil::task<> {
        co_await coil::yield();
        std::raise(SIGTRAP);
        here.stop();
    }(ctx));
    ctx.run();
}
