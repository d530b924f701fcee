// expect: shield(...) is awaited once: write co_await std::move(x), or await it directly

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto shielded = coil::shield(work());
    co_await std::move(shielded);
#else
    auto shielded = coil::shield(work());
    co_await shielded;
#endif
}
