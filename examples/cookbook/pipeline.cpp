// A pipeline of tasks connected by channels.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;

task<> produce(channel<int>& out) {
    for (int i = 1; i <= 3; ++i) {
        co_await out.send(i); // waits while the channel is full
    }
    out.close();
}

task<> convert(channel<int>& in, channel<std::string>& out) {
    while (const auto n = co_await in.recv()) {
        co_await out.send("number " + std::to_string(*n));
    }
    out.close();
}

task<> print(channel<std::string>& in) {
    while (const auto text = co_await in.recv()) {
        std::printf("%s\n", text->c_str());
    }
}

task<> co_main() {
    channel<int> numbers{2};
    channel<std::string> texts{2};
    co_await when_all(produce(numbers), convert(numbers, texts), print(texts));
}

int main() { coil::run(co_main()); }
