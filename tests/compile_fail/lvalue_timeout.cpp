// expect: an operation is awaited once: limit a temporary, or std::move() the operation
#include <coil/coil.hpp>

coil::task<int> user() {
    using namespace std::chrono_literals;
    auto op = coil::io::nop();
#ifdef COIL_EXPECT_OK
    co_return co_await coil::timeout(std::move(op), 1s);
#else
    co_return co_await coil::timeout(op, 1s);
#endif
}
