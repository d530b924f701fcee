// expect: dropping an eager operation cancels it

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    char buf[16];
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(coil::io::read(fd, buf));
    co_await pending;
#else
    coil::eager(coil::io::read(fd, buf));
    co_return;
#endif
}
