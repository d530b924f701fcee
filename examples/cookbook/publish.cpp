// Publish to any number of subscribers; a slow one loses the oldest messages.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;

task<> subscriber(std::string name, broadcast<int>::receiver news) {
    while (const auto n = co_await news.recv()) {
        std::printf("%s: %d\n", name.c_str(), *n);
    }
}

task<> publisher(broadcast<int>& news) {
    for (int i = 1; i <= 2; ++i) {
        news.send(i); // never waits
        co_await yield();
    }
    news.close();
}

task<> co_main() {
    broadcast<int> news{16}; // keeps the last 16
    co_await when_all(subscriber("a", news.subscribe()), subscriber("b", news.subscribe()),
                      publisher(news));
}

int main() { coil::run(co_main()); }
