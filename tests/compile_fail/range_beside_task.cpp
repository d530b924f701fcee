// expect: a range of awaitables must be the only argument of when_all or when_any

#include <coil/coil.hpp>

#include <vector>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    std::vector<coil::task<int>> tasks;
    co_await coil::when_all(coil::when_all(std::move(tasks)), work());
#else
    std::vector<coil::task<int>> tasks;
    co_await coil::when_all(std::move(tasks), work());
#endif
}
