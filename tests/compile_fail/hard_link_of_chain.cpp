// expect: hard_link() takes single operations, except as its last

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    using namespace coil;
#if defined(COIL_EXPECT_OK)
    co_await hard_link(io::close(fd), io::nop() && io::fsync(fd));
#else
    co_await hard_link(io::force_async(io::nop() && io::fsync(fd)), io::close(fd));
#endif
}
