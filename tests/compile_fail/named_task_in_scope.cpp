// expect: a task is spawned once: write s.spawn(std::move(t)), or s.spawn(f()) directly

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    auto t = work();
    coil::scope s;
    s.spawn(std::move(t));
    co_await s.join();
#else
    auto t = work();
    coil::scope s;
    s.spawn(t);
    co_await s.join();
#endif
}
