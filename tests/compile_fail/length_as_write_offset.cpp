// expect: the argument after the buffer is the offset; the length is part of the buffer
// only: clang

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await coil::io::write(fd, {buf, sizeof buf});
#else
    co_await coil::io::write(fd, buf, sizeof buf);
#endif
}
