// Arguments that cannot be spawned.

#include <coil/coil.hpp>

#include <functional>
#include <utility>
#include <vector>

#if COIL_CASE == 1 // spawned_function_with_a_parameter
// expect: co_spawn takes a task, or a function without parameters that returns one: co_spawn(f(x))

coil::task<> with(int);

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::co_spawn(with(1));
#else
    coil::co_spawn(with);
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // spawned_plain_function
// expect: co_spawn takes a task, or a function without parameters that returns one: co_spawn(f(x))

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::co_spawn([]() -> coil::task<> { co_return; });
#else
    coil::co_spawn([] {});
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // spawned_function_with_a_result
// expect: co_spawn takes a task<>, which has no result: spawn(

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto h = coil::spawn([]() -> coil::task<int> { co_return 1; });
    co_await h;
#else
    coil::co_spawn([]() -> coil::task<int> { co_return 1; });
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // spawned_operation
// expect: co_spawn takes a task, or a function without parameters that returns one: co_spawn(f(x))

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::nop();
#else
    coil::co_spawn(coil::io::nop());
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // spawned_result_with_a_stop_source
// expect: co_spawn takes a task<>, which has no result: spawn(

coil::task<int> work();

coil::task<> caller(coil::inplace_stop_source& source) {
#if defined(COIL_EXPECT_OK)
    auto h = coil::spawn(work(), source.get_token());
    co_await h;
#else
    coil::co_spawn(work(), source);
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // spawned_plain_function_with_a_handle
// expect: spawn takes a task, or a function without parameters that returns one

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto h = coil::spawn([]() -> coil::task<> { co_return; });
    co_await h;
#else
    auto h = coil::spawn([] {});
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // spawned_plain_function_on_a_context
// expect: co_spawn takes a task, or a function without parameters that returns one: co_spawn(f(x))

coil::task<> caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    ctx.post([] {});
#else
    ctx.co_spawn([] {});
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // spawned_result_on_a_context
// expect: co_spawn takes a task<>, which has no result: spawn(

coil::task<int> work();

coil::task<> caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    co_await ctx.spawn(work());
#else
    ctx.co_spawn(work());
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // spawned_another_type_in_a_task_group
// expect: a task_group<T> takes a task<T>: call the function, group.spawn(f(x))

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::task_group<> g;
    g.spawn(work());
#else
    coil::task_group<int> g;
    g.spawn(work());
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // spawned_lambda_in_a_supervisor
// expect: this is a function, not an awaitable: call it, f()

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::supervisor s;
    s.spawn([]() -> coil::task<> { co_return; }());
#else
    coil::supervisor s;
    s.spawn([]() -> coil::task<> { co_return; });
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // spawned_function_in_a_scope
// expect: this is a function, not an awaitable: call it, f()

coil::task<> with(int);

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(with(1));
#else
    coil::scope s;
    s.spawn(with);
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // spawned_stop_source_of_an_operation
// expect: pass the token of the stop source: with_stop_token(op, source.get_token())

coil::task<> caller(coil::inplace_stop_source& source) {
#if defined(COIL_EXPECT_OK)
    co_await coil::with_stop_token(coil::io::nop(), source.get_token());
#else
    co_await coil::with_stop_token(coil::io::nop(), source);
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // spawned_reduce_of_another_type
// expect: reduce combines two results of the tasks: T reduce(T, T), such as std::plus<>()

coil::task<> caller(std::vector<coil::task<int>> parts) {
#if defined(COIL_EXPECT_OK)
    co_await coil::parallel(std::move(parts), std::plus<>());
#else
    co_await coil::parallel(std::move(parts), [](int n) { return n; });
#endif
    co_return;
}
#endif
