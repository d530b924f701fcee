// expect: did you forget to co_await?
#include <coil/coil.hpp>

coil::task<> user(int fd) {
    using namespace std::chrono_literals;
#ifdef COIL_EXPECT_OK
    co_await coil::timeout(coil::io::close(fd), 1s);
#else
    coil::timeout(coil::io::close(fd), 1s);
    co_return;
#endif
}
