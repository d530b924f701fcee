// expect: an operation is awaited once: pass a temporary, or std::move() the operation

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    auto sync = coil::io::fsync(fd);
#if defined(COIL_EXPECT_OK)
    co_await coil::io::force_async(std::move(sync));
#else
    co_await coil::io::force_async(sync);
#endif
}
