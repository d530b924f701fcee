// expect: write co_await (a && b), with parentheses

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    char buf[16];
#if defined(COIL_EXPECT_OK)
    co_await (coil::io::nop() && coil::io::read(fd, buf));
#else
    co_await coil::io::nop() && coil::io::read(fd, buf);
#endif
}
