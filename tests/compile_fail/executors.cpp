// Executors, async tasks, blocking() and asyncify().

#include <coil/coil.hpp>

#if COIL_CASE == 1 // async_task_of_another_executor
// expect: the parameter after executor_arg_t is the async_task's Executor&

#if defined(COIL_EXPECT_OK)
using executor = coil::looper_executor;
#else
using executor = coil::any_executor;
#endif

coil::async_task<int, executor> work(coil::executor_arg_t, coil::looper_executor&) { co_return 1; }
#endif

#if COIL_CASE == 2 // async_task_on_default_runtime
// expect: a runtime runs only inside run()

#if defined(COIL_EXPECT_OK)
coil::async_task<int, coil::runtime> work(coil::executor_arg_t, coil::runtime&) { co_return 1; }
#else
coil::async_task<int, coil::runtime> work() { co_return 1; }
#endif
#endif

#if COIL_CASE == 3 // blocking_with_arguments
// expect: blocking(f) calls f with nothing, or with an inplace_stop_token

int twice(int n) { return 2 * n; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::blocking([] { return twice(1); });
#else
    co_await coil::blocking(twice);
#endif
}
#endif

#if COIL_CASE == 4 // dropped_async_task
// expect: dropping an async_task detaches it

coil::async_task<int> work();

void caller() {
#if defined(COIL_EXPECT_OK)
    work().then([](int) {});
#else
    work();
#endif
}
#endif

#if COIL_CASE == 5 // forgotten_await_asyncify
// expect: did you forget to co_await? Only that calls the function

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::asyncify([] {});
#else
    coil::asyncify([] {});
    co_return;
#endif
}
#endif

#if COIL_CASE == 6 // forgotten_await_asyncify_on
// expect: did you forget to co_await? Only that calls the function

coil::task<> caller(coil::blocking_pool& pool) {
#if defined(COIL_EXPECT_OK)
    co_await coil::asyncify([] {}, pool);
#else
    coil::asyncify([] {}, pool);
    co_return;
#endif
}
#endif

#if COIL_CASE == 7 // forgotten_await_blocking
// expect: did you forget to co_await? Only that calls the function

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::blocking([] {});
#else
    coil::blocking([] {});
    co_return;
#endif
}
#endif

#if COIL_CASE == 8 // forgotten_await_on
// expect: did you forget to co_await?

coil::task<> work();

coil::task<> caller(coil::looper_executor& ex) {
#if defined(COIL_EXPECT_OK)
    co_await coil::on(ex, work());
#else
    coil::on(ex, work());
    co_return;
#endif
}
#endif

#if COIL_CASE == 9 // forgotten_await_resume_on
// expect: did you forget to co_await?

coil::task<> caller(coil::looper_executor& ex) {
#if defined(COIL_EXPECT_OK)
    co_await coil::resume_on(ex);
#else
    coil::resume_on(ex);
    co_return;
#endif
}
#endif

#if COIL_CASE == 10 // forgotten_await_run_loop_yield
// expect: did you forget to co_await?

coil::task<> caller(coil::run_loop& loop) {
#if defined(COIL_EXPECT_OK)
    co_await loop.yield();
#else
    loop.yield();
    co_return;
#endif
}
#endif

#if COIL_CASE == 11 // forgotten_await_schedule
// expect: did you forget to co_await?

coil::task<> caller(coil::looper_executor& ex) {
#if defined(COIL_EXPECT_OK)
    co_await coil::schedule(ex);
#else
    coil::schedule(ex);
    co_return;
#endif
}
#endif

#if COIL_CASE == 12 // named_blocking
// expect: blocking(...) is awaited once: write co_await std::move(x), or await it directly

coil::task<> caller() {
    auto call = coil::blocking([] {});
#if defined(COIL_EXPECT_OK)
    co_await std::move(call);
#else
    co_await call;
#endif
}
#endif

#if COIL_CASE == 13 // then_of_another_type
// expect: then(f): f takes the task's result

struct other {};

void caller(coil::async_task<int>& t) {
#if defined(COIL_EXPECT_OK)
    t.then([](int) {});
#else
    t.then([](other) {});
#endif
}
#endif

#if COIL_CASE == 14 // any_executor_of_a_temporary
// expect: this executor cannot be moved: construct it in place

#if defined(COIL_EXPECT_OK)
coil::any_executor executor(std::in_place_type<coil::new_thread_executor>);
#else
coil::any_executor executor = coil::new_thread_executor();
#endif
#endif
