// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller(const coil::signal_set& signals) {
#if defined(COIL_EXPECT_OK)
    co_await signals.next();
#else
    signals.next();
    co_return;
#endif
}
