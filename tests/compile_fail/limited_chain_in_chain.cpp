// expect: inside a chain, limit single operations
#include <coil/coil.hpp>

coil::task<int> user() {
    using namespace std::chrono_literals;
    using coil::timeout;
    using coil::io::nop;
#ifdef COIL_EXPECT_OK
    co_return co_await (timeout(nop(), 1s) && timeout(nop(), 1s) && nop());
#else
    co_return co_await (timeout(nop() && nop(), 1s) && nop());
#endif
}
