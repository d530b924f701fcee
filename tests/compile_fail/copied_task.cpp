// expect: deleted
#include <coil/coil.hpp>

coil::task<int> answer();

coil::task<int> user() {
    auto t = answer();
#ifdef COIL_EXPECT_OK
    auto same = std::move(t);
#else
    auto same = t;
#endif
    co_return co_await std::move(same);
}
