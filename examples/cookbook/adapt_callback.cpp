// Await a function that reports its result by a callback on any thread.
#include <coil/coil.hpp>

#include <cstdio>
#include <thread>
#include <utility>

using namespace coil;

/// A function of a C library. It calls `done` on a thread of the library.
void look_up(int key, void (*done)(int value, void* user), void* user) {
    std::thread([=] { done(key * 2, user); }).detach();
}

task<int> look_up(int key) {
    co_return co_await from_callback<int>([&](completion<int> done) {
        look_up(
            key, [](int value, void* user) { completion<int>::from_address(user)(value); },
            std::move(done).to_address());
    });
}

task<> co_main() { std::printf("%d\n", co_await look_up(21)); }

int main() { coil::run(co_main()); }
