// expect: the parameter after executor_arg_t is the async_task's Executor&

#include <coil/coil.hpp>

#if defined(COIL_EXPECT_OK)
using executor = coil::looper_executor;
#else
using executor = coil::any_executor;
#endif

coil::async_task<int, executor> work(coil::executor_arg_t, coil::looper_executor&) { co_return 1; }
