// expect: a runtime runs only inside run()

#include <coil/coil.hpp>

#if defined(COIL_EXPECT_OK)
coil::async_task<int, coil::runtime> work(coil::executor_arg_t, coil::runtime&) { co_return 1; }
#else
coil::async_task<int, coil::runtime> work() { co_return 1; }
#endif
