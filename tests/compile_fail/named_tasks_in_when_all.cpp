// expect: a task is awaited once

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    std::vector<coil::task<int>> tasks;
    co_await coil::when_all(std::move(tasks));
#else
    std::vector<coil::task<int>> tasks;
    co_await coil::when_all(tasks);
#endif
}
