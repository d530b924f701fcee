// expect: deleted

#include <coil/coil.hpp>

#include <utility>

// The kernel knows a stream by its address.
void caller(coil::io::recv_stream& incoming) {
#if defined(COIL_EXPECT_OK)
    coil::io::recv_stream& same = incoming;
#else
    coil::io::recv_stream same(std::move(incoming));
#endif
    static_cast<void>(same);
}
