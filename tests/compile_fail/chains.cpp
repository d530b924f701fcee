// Linked operations.

#include <coil/coil.hpp>

#include <utility>

#if COIL_CASE == 1 // chain_without_parentheses
// expect: write co_await (a && b), with parentheses

coil::task<> caller(int fd) {
    char buf[16];
#if defined(COIL_EXPECT_OK)
    co_await (coil::io::nop() && coil::io::read(fd, buf));
#else
    co_await coil::io::nop() && coil::io::read(fd, buf);
#endif
}
#endif

#if COIL_CASE == 2 // drained_chain
// expect: drain() takes a single operation: await it before starting a chain

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::drain(coil::io::fsync(fd));
#else
    co_await coil::io::drain(coil::io::fsync(fd) && coil::io::nop());
#endif
}
#endif

#if COIL_CASE == 3 // drained_link
// expect: io::drain() is for single operations: the kernel has no barrier inside a chain

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    co_await (coil::io::force_async(coil::io::fsync(fd)) && coil::io::nop());
#else
    co_await (coil::io::force_async(coil::io::drain(coil::io::fsync(fd))) && coil::io::nop());
#endif
}
#endif

#if COIL_CASE == 4 // forgotten_await_chain
// expect: did you forget to co_await?

coil::task<> caller(int fd) {
    char buf[16];
#if defined(COIL_EXPECT_OK)
    co_await (coil::io::write(fd, "x") && coil::io::read(fd, buf));
#else
    coil::io::write(fd, "x") && coil::io::read(fd, buf);
    co_return;
#endif
}
#endif

#if COIL_CASE == 5 // hard_link_lvalue
// expect: an operation is awaited once: link temporaries, or std::move() the operations

coil::task<> caller(int fd) {
    auto sync = coil::io::fsync(fd);
#if defined(COIL_EXPECT_OK)
    co_await coil::hard_link(std::move(sync), coil::io::close(fd));
#else
    co_await coil::hard_link(sync, coil::io::close(fd));
#endif
}
#endif

#if COIL_CASE == 6 // hard_link_of_chain
// expect: hard_link() takes single operations, except as its last

coil::task<> caller(int fd) {
    using namespace coil;
#if defined(COIL_EXPECT_OK)
    co_await hard_link(io::close(fd), io::nop() && io::fsync(fd));
#else
    co_await hard_link(io::force_async(io::nop() && io::fsync(fd)), io::close(fd));
#endif
}
#endif

#if COIL_CASE == 7 // hard_link_of_one
// expect: hard_link() links operations: give it two or more

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    co_await coil::hard_link(coil::io::fsync(fd), coil::io::close(fd));
#else
    co_await coil::hard_link(coil::io::fsync(fd));
#endif
}
#endif

#if COIL_CASE == 8 // link_lvalue
// expect: an operation is awaited once

coil::task<> caller(int fd) {
    char buf[16];
    auto first = coil::io::write(fd, "x");
#if defined(COIL_EXPECT_OK)
    co_await (std::move(first) && coil::io::read(fd, buf));
#else
    co_await (first && coil::io::read(fd, buf));
#endif
}
#endif

#if COIL_CASE == 9 // linked_eager
// expect: this operation has already started: link the operations first, eager(a && b)

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
#endif
