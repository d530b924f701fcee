// expect: blocking(...) is awaited once: write co_await std::move(x), or await it directly

#include <coil/coil.hpp>

coil::task<> caller() {
    auto call = coil::blocking([] {});
#if defined(COIL_EXPECT_OK)
    co_await std::move(call);
#else
    co_await call;
#endif
}
