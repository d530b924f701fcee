// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    char buf[16];
#if defined(COIL_EXPECT_OK)
    co_await (coil::io::write(fd, "x") && coil::io::read(fd, buf));
#else
    coil::io::write(fd, "x") && coil::io::read(fd, buf);
    co_return;
#endif
}
