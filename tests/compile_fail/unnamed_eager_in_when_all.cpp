// expect: an awaitable that cannot be moved is passed by name: auto x = eager(op); when_all(x, ...)

#include <coil/coil.hpp>

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(coil::io::nop());
    co_await coil::when_all(pending, coil::io::nop());
#else
    co_await coil::when_all(coil::eager(coil::io::nop()), coil::io::nop());
#endif
}
