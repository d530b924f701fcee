// Send values from a plain thread into a coroutine, and start a task from a plain thread.
#include <coil/coil.hpp>

#include <cstdio>
#include <thread>

using namespace coil;

task<int> sum(channel<int>& values) {
    int total = 0;
    while (const auto n = co_await values.recv()) {
        total += *n;
    }
    co_return total;
}

int main() {
    channel<int> values{unbounded};
    io_context ctx;
    ctx.start();                                      // on a thread of its own
    join_handle<int> result = ctx.spawn(sum(values)); // from any thread

    std::thread producer([&values] {
        for (int i = 1; i <= 4; ++i) {
            values.try_send(i); // never blocks
        }
        values.close();
    });
    std::printf("%d\n", result.get()); // blocks this thread, which runs no context
    producer.join();
    ctx.stop();
    ctx.join();
}
