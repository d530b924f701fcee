// expect: this operation is under way: link operations first, eager(a && b)

#include <coil/coil.hpp>

coil::task<> caller(int fd) {
    char buf[16];
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(coil::io::read(fd, buf) && coil::io::nop());
    co_await pending;
#else
    auto pending = coil::eager(coil::io::read(fd, buf));
    co_await (pending && coil::io::nop());
#endif
}
