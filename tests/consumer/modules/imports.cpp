// `import coil;` together with a translation unit that includes it: types, thread-locals and
// exceptions are the same in both.
#include <chrono>
#include <cstdio>
#include <filesystem>

import coil;

coil::task<int> answer_from_includer(coil::io_context& expected);
coil::task<> fail_in_includer();

namespace {

coil::task<int> co_main() {
    using namespace std::chrono_literals;
    const int got =
        co_await answer_from_includer(coil::this_context()) + co_await coil::io::nop() + 1;
    bool caught = false;
    try {
        co_await coil::timeout(fail_in_includer(), 10s);
    } catch (const std::filesystem::filesystem_error&) {
        caught = true;
    }
    // operators are exported as well
    const int chained = co_await (coil::io::nop() && coil::io::nop());
    coil::mutex m;
    const auto lock = co_await m.lock_guard();
    std::printf("%d, %s, %d\n", got, caught ? "caught" : "lost", chained);
    co_return got == 42 && caught&& chained == 0 ? 0 : 1;
}

} // namespace

int main() { return coil::run(co_main()); }
