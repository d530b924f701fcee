// expect: an error would be lost
// only: clang

#include <coil/coil.hpp>

// An error of fsync(2) that is ignored is data that is lost without a word.
coil::task<> caller(coil::fs::file& file) {
#if defined(COIL_EXPECT_OK)
    (co_await file.data_sync()).value();
    (co_await file.resize(1)).value();
    (co_await file.close()).value();
    if (const int r = co_await file.sync(); r < 0) {
        co_return;
    }
#else
    co_await file.sync();
#endif
}
