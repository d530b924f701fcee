// expect: recv

#include <coil/coil.hpp>

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    char buf[4];
#else
    const char buf[4] = {};
#endif
    co_await peer.recv(buf);
}
