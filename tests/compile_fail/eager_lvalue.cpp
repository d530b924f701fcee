// expect: an operation is started once: pass eager() a temporary, or std::move() it

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    char buf[16];
    auto op = coil::io::read(fd, buf);
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(std::move(op));
#else
    auto pending = coil::eager(op);
#endif
    co_await pending;
}
