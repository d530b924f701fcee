// expect: deleted

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    char buf[16];
    auto pending = coil::eager(coil::io::read(fd, buf));
#if defined(COIL_EXPECT_OK)
    auto& same = pending;
#else
    auto same = std::move(pending);
#endif
    co_await same;
}
