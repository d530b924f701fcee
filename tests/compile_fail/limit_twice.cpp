// expect: this operation is limited already

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    using namespace std::chrono_literals;
    char buf[16];
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(coil::io::read(fd, buf), 1s);
#else
    co_await coil::timeout(coil::timeout(coil::io::read(fd, buf), 1s), 2s);
#endif
}
