// expect: timeout() limits operations, not tasks: put it on those that the task awaits

#include <coil/coil.hpp>

coil::task<> receives(int fd) {
    char buf[16];
    co_await coil::io::read(fd, buf);
}

coil::task<> caller(int fd) {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(coil::io::nop(), 1s);
    co_await receives(fd);
#else
    coil::timeout(receives(fd), 1s);
#endif
}
