// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller(coil::io::recv_stream& incoming) {
#if defined(COIL_EXPECT_OK)
    const auto chunk = co_await timeout(incoming.next(), std::chrono::seconds(1));
#else
    timeout(incoming.next(), std::chrono::seconds(1));
    co_return;
#endif
}
