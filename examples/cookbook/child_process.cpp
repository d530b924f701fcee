// Start a program, read its output, and wait until it has ended.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;

task<> co_main() {
    process p = process::spawn({"echo", "hello"});
    buffered_reader out{p.stdout()};
    auto lines = out.lines();
    while (const auto line = co_await lines.next()) {
        std::printf("it says: %.*s\n", static_cast<int>(line->size()), line->data());
    }
    const exit_status status = co_await p.wait();
    std::printf("it ended with %s\n", status.to_string().c_str());
}

int main() { coil::run(co_main()); }
