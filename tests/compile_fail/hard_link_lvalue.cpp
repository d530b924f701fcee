// expect: an operation is awaited once: link temporaries, or std::move() the operations

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    auto sync = coil::io::fsync(fd);
#if defined(COIL_EXPECT_OK)
    co_await coil::hard_link(std::move(sync), coil::io::close(fd));
#else
    co_await coil::hard_link(sync, coil::io::close(fd));
#endif
}
