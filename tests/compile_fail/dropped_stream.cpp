// expect: ignoring return value

#include <coil/coil.hpp>

void caller(int fd, coil::buffer_pool& pool) {
#if defined(COIL_EXPECT_OK)
    const auto incoming = coil::io::recv_multishot(fd, pool);
#else
    coil::io::recv_multishot(fd, pool);
#endif
}
