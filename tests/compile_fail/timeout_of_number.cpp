// expect: a limit is a duration: timeout(op, 3s)
#include <coil/coil.hpp>

#include <chrono>

coil::task<> waits() {
#ifdef COIL_EXPECT_OK
    co_await coil::timeout(coil::io::nop(), std::chrono::seconds(3));
#else
    co_await coil::timeout(coil::io::nop(), 3);
#endif
}
