// expect: this is a span, not a time: write timeout(work, span)

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(work(), 1s);
#else
    co_await coil::timeout_at(work(), 1s);
#endif
}
