// Arguments in the wrong order, functions that are not called.

#include <coil/coil.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#if COIL_CASE == 1 // limit_before_the_work
// expect: the work comes first: timeout(work, 3s)

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await timeout(work(), std::chrono::seconds(3));
#else
    co_await coil::timeout(std::chrono::seconds(3), work());
#endif
}
#endif

#if COIL_CASE == 2 // limit_of_a_function
// expect: this is a function, not an awaitable: call it, f()

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await timeout(work(), std::chrono::seconds(3));
#else
    co_await coil::timeout(work, std::chrono::seconds(3));
#endif
}
#endif

#if COIL_CASE == 3 // limit_of_a_lambda
// expect: this is a function, not an awaitable: call it, f()

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto work = []() -> coil::task<> { co_return; };
    co_await timeout(work(), std::chrono::seconds(3));
#else
    auto work = []() -> coil::task<> { co_return; };
    co_await coil::timeout(work, std::chrono::seconds(3));
#endif
}
#endif

#if COIL_CASE == 4 // deadline_of_a_duration
// expect: this is a duration, not a time point: write timeout(work, duration)

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await timeout(work(), std::chrono::seconds(3));
#else
    co_await coil::with_deadline(std::chrono::seconds(3), work());
#endif
}
#endif

#if COIL_CASE == 5 // deadline_behind_the_work
// expect: the time point comes first: with_deadline(time, work)

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::with_deadline(std::chrono::steady_clock::now(), work());
#else
    co_await coil::with_deadline(work(), std::chrono::steady_clock::now());
#endif
}
#endif

#if COIL_CASE == 6 // token_before_the_work
// expect: the work comes first: with_stop_token(work, token)

coil::task<> work();

coil::task<> caller(coil::inplace_stop_token token) {
#if defined(COIL_EXPECT_OK)
    co_await coil::with_stop_token(work(), token);
#else
    co_await coil::with_stop_token(token, work());
#endif
}
#endif

#if COIL_CASE == 7 // executor_behind_the_work
// expect: the executor comes first: on(executor, work)

coil::task<> work();

coil::task<> caller(coil::thread_pool& pool) {
#if defined(COIL_EXPECT_OK)
    co_await coil::on(pool, work());
#else
    co_await coil::on(work(), pool);
#endif
}
#endif

#if COIL_CASE == 8 // function_on_an_executor
// expect: on takes a task: call the function, on(executor, f())

coil::task<> work();

coil::task<> caller(coil::thread_pool& pool) {
#if defined(COIL_EXPECT_OK)
    co_await coil::on(pool, work());
#else
    co_await coil::on(pool, work);
#endif
}
#endif

#if COIL_CASE == 9 // run_of_an_operation
// expect: run takes a task: call the function, run(co_main())

coil::task<> work();

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::run(work());
#else
    coil::run(coil::io::nop());
#endif
}
#endif

#if COIL_CASE == 10 // run_of_a_generator
// expect: run takes a task: call the function, run(co_main())

coil::task<> work();
coil::generator<int> numbers();

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::run(work());
#else
    coil::run(numbers());
#endif
}
#endif

#if COIL_CASE == 11 // run_of_two_tasks
// expect: run takes one task, which awaits the others

coil::task<> work();

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::run(work());
#else
    coil::run(work(), work());
#endif
}
#endif

#if COIL_CASE == 12 // parallel_of_a_named_vector
// expect: parallel takes a vector of tasks, and moves them: parallel(std::move(tasks))

coil::task<> caller(std::vector<coil::task<int>> tasks) {
#if defined(COIL_EXPECT_OK)
    co_await coil::parallel(std::move(tasks));
#else
    co_await coil::parallel(tasks);
#endif
}
#endif

#if COIL_CASE == 13 // parallel_of_tasks
// expect: parallel takes a vector of tasks, and moves them: parallel(std::move(tasks))

coil::task<int> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::when_all(work(), work());
#else
    co_await coil::parallel(work(), work());
#endif
}
#endif

#if COIL_CASE == 14 // concurrent_function_without_a_task
// expect: write for_each_concurrent(range, 8, f), where f takes an element of the range and

coil::task<> caller(std::vector<int>& all) {
#if defined(COIL_EXPECT_OK)
    co_await coil::for_each_concurrent(all, 8, [](int) -> coil::task<> { co_return; });
#else
    co_await coil::for_each_concurrent(all, 8, [](int) {});
#endif
}
#endif

#if COIL_CASE == 15 // concurrent_limit_behind_the_function
// expect: write for_each_concurrent(range, 8, f), where f takes an element of the range and

coil::task<> caller(std::vector<int>& all) {
#if defined(COIL_EXPECT_OK)
    co_await coil::for_each_concurrent(all, 8, [](int) -> coil::task<> { co_return; });
#else
    co_await coil::for_each_concurrent(all, [](int) -> coil::task<> { co_return; }, 8);
#endif
}
#endif

#if COIL_CASE == 16 // when_all_of_a_list
// expect: write the awaitables without braces: when_all(f(), g())

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::when_all(work(), work());
#else
    co_await coil::when_all({work(), work()});
#endif
}
#endif

#if COIL_CASE == 17 // when_all_of_functions
// expect: the elements of this range cannot be awaited

coil::task<> caller(std::vector<std::function<coil::task<>()>> all) {
#if defined(COIL_EXPECT_OK)
    std::vector<coil::task<>> tasks;
    for (auto& f : all) {
        tasks.push_back(f());
    }
    co_await coil::when_all(std::move(tasks));
#else
    co_await coil::when_all(all);
#endif
}
#endif

#if COIL_CASE == 18 // spawned_generator_in_a_scope
// expect: the elements of this range cannot be awaited

coil::task<> work();
coil::generator<int> numbers();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(work());
    co_await s.join();
#else
    coil::scope s;
    s.spawn(numbers());
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 19 // function_and_arguments_in_a_scope
// expect: this is a function, not an awaitable: call it, f()

coil::task<> work(int);

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(work(1));
    co_await s.join();
#else
    coil::scope s;
    s.spawn(work, 1);
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 20 // supervised_function
// expect: this is a function, not an awaitable: call it, f()

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::supervisor s;
    co_await s.spawn(work());
    co_await s.join();
#else
    coil::supervisor s;
    co_await s.spawn(work);
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 21 // function_on_a_runtime
// expect: co_spawn takes a task, or a function without parameters that returns one: co_spawn(f(x))

coil::task<> work(int);

void caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    rt.co_spawn(work(1));
#else
    rt.co_spawn(work);
#endif
}
#endif

#if COIL_CASE == 22 // result_on_a_runtime
// expect: co_spawn takes a task<>, which has no result: spawn(

coil::task<int> work();

void caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    auto h = rt.spawn(work());
    h.get();
#else
    rt.co_spawn(work());
#endif
}
#endif

#if COIL_CASE == 23 // function_on_a_simulated_host
// expect: co_spawn takes a task, or a function without parameters that returns one: co_spawn(f(x))

coil::task<> work(int);

void caller(coil::sim::host& h) {
#if defined(COIL_EXPECT_OK)
    h.co_spawn(work(1));
#else
    h.co_spawn(work);
#endif
}
#endif

#if COIL_CASE == 24 // result_on_a_simulated_host
// expect: co_spawn takes a task<>, which has no result: spawn(

coil::task<int> work();

void caller(coil::sim::host& h) {
#if defined(COIL_EXPECT_OK)
    auto h2 = h.spawn(work());
    h2.get();
#else
    h.co_spawn(work());
#endif
}
#endif

#if COIL_CASE == 25 // handler_by_reference
// expect: the handler takes the connection by value and returns a task<>

coil::task<> session(coil::net::socket);
coil::task<> refers(coil::net::socket&);

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, 80, session);
#else
    co_await coil::net::serve(rt, 80, refers);
#endif
}
#endif

#if COIL_CASE == 26 // handler_without_a_task
// expect: the handler takes the connection by value and returns a task<>

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, 80, [](coil::net::socket) -> coil::task<> { co_return; });
#else
    co_await coil::net::serve(rt, 80, [](coil::net::socket) {});
#endif
}
#endif

#if COIL_CASE == 27 // connect_without_a_port
// expect: connect takes the host and the port

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto peer = co_await coil::net::connect("localhost", 80);
#else
    auto peer = co_await coil::net::connect("localhost:80");
#endif
}
#endif

#if COIL_CASE == 28 // condition_with_a_std_lock
// expect: a coil::condition_variable waits with a coil::mutex

coil::task<> caller(coil::condition_variable& cv, coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    co_await cv.wait(m);
#else
    auto held = co_await m.lock_guard();
    co_await cv.wait(held);
#endif
}
#endif
