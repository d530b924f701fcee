// expect: the argument after the buffer is the flags; the length is part of the buffer

#include <coil/coil.hpp>

coil::task<> caller(coil::net::socket& peer, std::size_t n) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await peer.recv({buf, n});
#else
    co_await peer.recv(buf, n);
#endif
}
