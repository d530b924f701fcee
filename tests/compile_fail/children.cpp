// Scopes and supervisors.

#include <coil/coil.hpp>

#include <exception>
#include <stop_token>
#include <string>
#include <vector>

#if COIL_CASE == 1 // scope_of_a_void_call
// expect: spawn takes a task or another awaitable, and perhaps a name

void plain();
coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(work());
    co_await s.join();
#else
    coil::scope s;
    s.spawn(plain());
    co_await s.join();
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // scope_of_nothing
// expect: spawn takes a task or another awaitable, and perhaps a name

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(work());
    co_await s.join();
#else
    coil::scope s;
    s.spawn();
    co_await s.join();
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // scope_joined_with_a_limit
// expect: a scope is joined without a limit: co_await timeout(s.join(), 3s)

coil::task<> caller(coil::scope& s) {
#if defined(COIL_EXPECT_OK)
    co_await timeout(s.join(), std::chrono::seconds(5));
#else
    co_await s.join(std::chrono::seconds(5));
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // scope_with_a_number
// expect: a scope has no options

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const coil::scope s;
#else
    const coil::scope s(4);
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // scope_with_a_stop_source
// expect: pass the token of the stop source: scope s(source.get_token())

coil::task<> caller(coil::inplace_stop_source& source) {
#if defined(COIL_EXPECT_OK)
    const coil::scope s(source.get_token());
#else
    const coil::scope s(source);
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // scope_with_a_std_token
// expect: a scope takes an inplace_stop_token

coil::task<> caller(std::stop_token token) {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(token);
    const coil::scope s(co_await coil::this_task::stop_token());
#else
    const coil::scope s(token);
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // child_as_its_result
// expect: did you forget to co_await? Only that gives the result

coil::task<int> number();

coil::task<> caller(coil::scope& s) {
#if defined(COIL_EXPECT_OK)
    auto child = s.spawn(number());
    const int n = co_await child;
    static_cast<void>(n);
#else
    const int n = s.spawn(number());
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // supervisor_awaited
// expect: join it: co_await s.join()

coil::task<> caller(coil::supervisor& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.join();
#else
    co_await s;
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // supervisor_joined_with_a_number
// expect: pass a duration with a unit: co_await s.join(5s)

coil::task<> caller(coil::supervisor& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.join(std::chrono::seconds(5));
#else
    co_await s.join(5);
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // supervisor_of_a_number
// expect: name the option: supervisor s{{.max_children = 100}}

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::supervisor s{{.on_failure = {}, .max_children = 100}};
#else
    coil::supervisor s(100);
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // failure_handler_of_a_number
// expect: on_failure takes (std::exception_ptr error) or

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::supervisor_options o;
    o.on_failure = [](std::exception_ptr) {};
#else
    coil::supervisor_options o;
    o.on_failure = [](int) {};
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // failure_handler_without_parameters
// expect: on_failure takes (std::exception_ptr error) or

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::supervisor_options o;
    o.on_failure = [](std::exception_ptr, std::string_view) {};
#else
    coil::supervisor_options o;
    o.on_failure = [] {};
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // restarted_task
// expect: spawn_restarting takes a function without parameters that returns a task

coil::task<> work();

coil::task<> caller(coil::supervisor& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.spawn_restarting(work);
#else
    co_await s.spawn_restarting(work());
#endif
    co_return;
}
#endif
