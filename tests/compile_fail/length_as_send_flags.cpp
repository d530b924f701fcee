// expect: the argument after the buffer is the flags; the length is part of the buffer

#include <coil/coil.hpp>

coil::task<> caller(int fd, std::size_t n) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await coil::io::send(fd, {buf, n});
#else
    co_await coil::io::send(fd, buf, n);
#endif
}
