// expect: a task is awaited once

#include <coil/coil.hpp>

#include <utility>

coil::task<int> answer() { co_return 42; }

coil::task<> caller() {
    coil::task<int> t = answer();
#if defined(COIL_EXPECT_OK)
    co_await std::move(t);
#else
    co_await t;
#endif
}
