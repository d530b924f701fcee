// expect: a task is awaited once

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    auto t = work();
    co_await coil::when_all(std::move(t), coil::timeout(1s));
#else
    auto t = work();
    co_await coil::when_all(t, coil::timeout(1s));
#endif
}
