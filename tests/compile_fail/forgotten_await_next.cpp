// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller(coil::io::accept_stream& connections) {
#if defined(COIL_EXPECT_OK)
    const int fd = co_await connections.next();
    co_await coil::io::close(fd);
#else
    connections.next();
    co_return;
#endif
}
