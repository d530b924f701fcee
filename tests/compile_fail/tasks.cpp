// Tasks, generators, spawning and sleeping.

#include <coil/coil.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if COIL_CASE == 1 // await_in_generator
// expect: a generator only computes and cannot co_await: make it an async_generator

#if defined(COIL_EXPECT_OK)
coil::async_generator<int> numbers() {
#else
coil::generator<int> numbers() {
#endif
    co_yield co_await coil::io::nop();
}
#endif

#if COIL_CASE == 2 // await_task_lvalue
// expect: a task is awaited once
// mistake 6: `co_await t;` of a named task

coil::task<int> answer() { co_return 42; }

coil::task<> caller() {
    coil::task<int> t = answer();
#if defined(COIL_EXPECT_OK)
    co_await std::move(t);
#else
    co_await t;
#endif
}
#endif

#if COIL_CASE == 3 // copied_task
// expect: deleted

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
#endif

#if COIL_CASE == 4 // dropped_join_handle
// expect: use co_spawn to say so
// mistake 16, warning: `spawn(f());` as a statement

coil::task<> work() { co_return; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::co_spawn(work());
#else
    coil::spawn(work());
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // forgotten_await_generator
// expect: did you forget to co_await?

coil::async_generator<int> numbers() { co_yield 1; }

coil::task<> caller() {
    auto all = numbers();
#if defined(COIL_EXPECT_OK)
    co_await all.next();
#else
    all.next();
    co_return;
#endif
}
#endif

#if COIL_CASE == 6 // forgotten_await_join
// expect: did you forget to co_await?

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(work());
    co_await s.join();
#else
    coil::scope s;
    s.spawn(work());
    s.join();
    co_return;
#endif
}
#endif

#if COIL_CASE == 7 // forgotten_await_sleep
// expect: did you forget to co_await?

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(1s);
#else
    coil::timeout(1s);
    co_return;
#endif
}
#endif

#if COIL_CASE == 8 // forgotten_await_task
// expect: did you forget to co_await?
// mistake 1, warning: `f();` as a statement

coil::task<int> answer() { co_return 42; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await answer();
#else
    answer();
    co_return;
#endif
}
#endif

#if COIL_CASE == 9 // forgotten_await_yield
// expect: did you forget to co_await?

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::yield();
#else
    coil::yield();
    co_return;
#endif
}
#endif

#if COIL_CASE == 10 // forgotten_stop_token
// expect: did you forget to co_await?

coil::task<> user() {
#ifdef COIL_EXPECT_OK
    (void)co_await coil::this_task::stop_token();
#else
    coil::this_task::stop_token();
    co_return;
#endif
}
#endif

#if COIL_CASE == 11 // next_of_temporary
// expect: temporary
// only: clang
// mistake 25, warning: `auto next = numbers().next();`

coil::async_generator<int> numbers() { co_yield 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto all = numbers();
    auto next = all.next();
    co_await next;
#else
    auto next = numbers().next();
    co_await next;
#endif
}
#endif

#if COIL_CASE == 12 // run_of_function
// expect: run takes a task: call the function, run(co_main())
// mistake 1: `run(f)` instead of `run(f())`

coil::task<int> co_main() { co_return 0; }

int main() {
#ifdef COIL_EXPECT_OK
    return coil::run(co_main());
#else
    coil::run(co_main);
#endif
}
#endif

#if COIL_CASE == 13 // sleep_of_number
// expect: pass a duration with a unit: sleep_for(3s)

coil::task<> waits() {
#ifdef COIL_EXPECT_OK
    co_await coil::sleep_for(std::chrono::seconds(3));
#else
    co_await coil::sleep_for(3);
#endif
}
#endif

#if COIL_CASE == 14 // spawned_result
// expect: co_spawn takes a task<>, which has no result: spawn(t) returns a handle to the result

coil::task<int> answer() { co_return 42; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto handle = coil::spawn(answer());
    co_await handle;
#else
    coil::co_spawn(answer());
    co_return;
#endif
}
#endif

#if COIL_CASE == 15 // task_used_as_its_result
// expect: did you forget to co_await? Write co_await f()
// mistake 1: `int n = f();`

coil::task<int> answer();

coil::task<int> caller() {
#ifdef COIL_EXPECT_OK
    const int n = co_await answer();
#else
    const int n = answer();
#endif
    co_return n;
}
#endif

#if COIL_CASE == 16 // task_used_as_a_condition
// expect: did you forget to co_await? Write co_await f()
// mistake 1: `if (f())`

coil::task<bool> ready();
coil::task<> work();

coil::task<> caller() {
#ifdef COIL_EXPECT_OK
    if (co_await ready()) {
        co_await work();
    }
#else
    if (ready()) {
        co_await work();
    }
#endif
}
#endif

#if COIL_CASE == 17 // stored_task
// expect: unused variable
// mistake 1, warning: `auto t = f();` that is not used

coil::task<> work();

coil::task<> caller() {
    auto t = work();
#ifdef COIL_EXPECT_OK
    co_await std::move(t);
#endif
    co_return;
}
#endif

#if COIL_CASE == 18 // stored_join_handle
// expect: unused variable
// mistake 16, warning: `auto h = spawn(f());` that is not used

coil::task<> work();

coil::task<> caller() {
    auto h = coil::spawn(work());
#ifdef COIL_EXPECT_OK
    co_await h;
#endif
    co_return;
}
#endif

#if COIL_CASE == 19 // view_of_a_local
// expect: the result would refer to a local variable or a temporary
// mistake 18: a `task<std::string_view>` returns a local string

const std::string name = "name";

coil::task<std::string_view> caller() {
#ifdef COIL_EXPECT_OK
    const std::string_view view = name;
    if (view.empty()) {
        co_return "a literal";
    }
    if (view.size() > 100) {
        co_return name;
    }
    co_return view;
#else
    std::string local = "local";
    co_return local;
#endif
}
#endif

#if COIL_CASE == 20 // reference_to_a_local
// expect: the result would refer to a local variable or a temporary
// mistake 18: a `task<const std::string&>` returns a local string

const std::string name = "name";

coil::task<const std::string&> caller() {
#ifdef COIL_EXPECT_OK
    co_return name;
#else
    const std::string local = "local";
    co_return local;
#endif
}
#endif

#if COIL_CASE == 21 // span_of_a_local
// expect: the result would refer to a local variable or a temporary
// mistake 18: a `task<std::span<int>>` returns a local vector

std::vector<int> numbers;

coil::task<std::span<int>> caller() {
#ifdef COIL_EXPECT_OK
    co_return numbers;
#else
    std::vector<int> local(3);
    co_return local;
#endif
}
#endif

#if COIL_CASE == 22 // spawned_with_a_stop_source
// expect: pass the token of the stop source: co_spawn(f(), source.get_token())

coil::task<> work();

coil::task<> caller(coil::inplace_stop_source& source) {
#ifdef COIL_EXPECT_OK
    coil::co_spawn(work(), source.get_token());
#else
    coil::co_spawn(work(), source);
#endif
    co_return;
}
#endif

#if COIL_CASE == 23 // optional_view_of_a_local
// expect: the result would refer to a local variable or a temporary
// mistake 18: a `task<std::optional<std::string_view>>` returns a local string

const std::string name = "name";

coil::task<std::optional<std::string_view>> caller(bool found) {
#ifdef COIL_EXPECT_OK
    if (!found) {
        co_return std::nullopt;
    }
    std::optional<std::string_view> view = name;
    if (view->empty()) {
        co_return "a literal";
    }
    if (view->size() > 100) {
        co_return name;
    }
    co_return view;
#else
    std::string local = "local";
    if (!found) {
        co_return std::nullopt;
    }
    co_return local;
#endif
}
#endif
