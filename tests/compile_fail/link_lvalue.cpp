// expect: an operation is awaited once

#include <coil/coil.hpp>

#include <utility>

coil::task<> caller(int fd) {
    char buf[16];
    auto first = coil::io::write(fd, "x");
#if defined(COIL_EXPECT_OK)
    co_await (std::move(first) && coil::io::read(fd, buf));
#else
    co_await (first && coil::io::read(fd, buf));
#endif
}
