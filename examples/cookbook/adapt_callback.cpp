// Await a function that reports its result by a callback on any thread.
#include <coil/coil.hpp>

#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

using namespace coil;

/// The library calls `done` on its own thread.
void look_up(int key, std::function<void(int)> done) {
    std::thread([key, done = std::move(done)] { done(key * 2); }).detach();
}

task<int> look_up(int key) {
    // Shared with the callback, which may be called after this task was cancelled.
    auto answer = std::make_shared<oneshot<int>>();
    look_up(key, [answer](int value) { answer->send(value); });
    const std::optional<int> value = co_await answer->recv();
    if (!value) {
        throw std::runtime_error("no answer");
    }
    co_return *value;
}

task<> co_main() { std::printf("%d\n", co_await look_up(21)); }

int main() { coil::run(co_main()); }
