// expect: how long is a duration: sleep_for(3s)
#include <coil/coil.hpp>

#include <chrono>

coil::task<> waits() {
#ifdef COIL_EXPECT_OK
    co_await coil::sleep_for(std::chrono::seconds(3));
#else
    co_await coil::sleep_for(3);
#endif
}
