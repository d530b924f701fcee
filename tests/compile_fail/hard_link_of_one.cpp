// expect: hard_link() links operations: give it two or more

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    co_await coil::hard_link(coil::io::fsync(fd), coil::io::close(fd));
#else
    co_await coil::hard_link(coil::io::fsync(fd));
#endif
}
