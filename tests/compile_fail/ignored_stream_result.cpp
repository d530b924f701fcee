// expect: ignoring return value
// only: clang

#include <coil/coil.hpp>

// An accepted descriptor that nobody looks at is lost.
coil::task<> caller(coil::io::accept_stream& connections) {
#if defined(COIL_EXPECT_OK)
    const int fd = co_await connections.next();
    co_await coil::io::close(fd);
#else
    co_await connections.next();
#endif
}
