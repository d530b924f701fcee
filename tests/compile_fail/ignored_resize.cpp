// expect: an error would be lost
// only: clang

#include <coil/coil.hpp>

coil::task<> caller(coil::fs::file& file) {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(co_await file.resize(1));
#else
    co_await file.resize(1);
#endif
}
