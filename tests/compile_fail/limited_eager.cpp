// expect: this operation is under way: limit it before it starts, eager(timeout(op, d))

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    using namespace std::chrono_literals;
    char buf[16];
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(coil::timeout(coil::io::read(fd, buf), 1s));
    co_await pending;
#else
    auto pending = coil::eager(coil::io::read(fd, buf));
    co_await coil::timeout(pending, 1s);
#endif
}
