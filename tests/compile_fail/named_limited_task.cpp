// expect: timeout(...) is awaited once: write co_await std::move(x), or await it directly

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    auto limited = coil::timeout(work(), 1s);
    co_await std::move(limited);
#else
    auto limited = coil::timeout(work(), 1s);
    co_await limited;
#endif
}
