// expect: did you forget to co_await?
#include <coil/coil.hpp>

coil::task<> user(coil::net::socket& s) {
#ifdef COIL_EXPECT_OK
    co_await s.close();
#else
    s.close();
    co_return;
#endif
}
