// expect: drain() takes a single operation: await it before starting a chain

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::drain(coil::io::fsync(fd));
#else
    co_await coil::io::drain(coil::io::fsync(fd) && coil::io::nop());
#endif
}
