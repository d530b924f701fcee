// Imports the parts of coil separately, and includes only headers of the standard library.
#include <cstdio>
#include <string_view>

import coil.core;
import coil.task;
import coil.io;
import coil.fs;
import coil.uring;

namespace {

coil::task<int> twice(int x) { co_return 2 * x; } // coil.core

coil::task<int> co_main() {
    const int called = co_await coil::blocking([] { return 21; }); // coil.task
    co_await coil::io::nop();                                      // coil.io
    const coil::fs::path path = "a/b";                             // coil.fs
    const bool has_rings = static_cast<bool>(coil::uring::available());
    const int answer = co_await twice(called);
    std::printf("%d %s %d\n", answer, path.filename().c_str(), has_rings ? 1 : 0);
    co_return answer == 42 && path.filename() == "b" && has_rings ? 0 : 1;
}

} // namespace

int main() { return coil::run(co_main()); }
