// expect: when_all(...) is awaited once: write co_await std::move(x), or await it directly

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    auto both = coil::when_all(work(), work());
    co_await std::move(both);
#else
    auto both = coil::when_all(work(), work());
    co_await both;
#endif
}
