// expect: io::drain() is for single operations: the kernel has no barrier inside a chain

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    co_await (coil::io::force_async(coil::io::fsync(fd)) && coil::io::nop());
#else
    co_await (coil::io::force_async(coil::io::drain(coil::io::fsync(fd))) && coil::io::nop());
#endif
}
