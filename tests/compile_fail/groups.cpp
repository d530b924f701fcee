// Groups of tasks, contexts and runtimes.

#include <coil/coil.hpp>

#include <exception>
#include <stop_token>
#include <string>
#include <vector>

#if COIL_CASE == 1 // restarted_plain_function
// expect: spawn_restarting takes a function without parameters that returns a task

coil::task<> work();

coil::task<> caller(coil::supervisor& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.spawn_restarting(work);
#else
    co_await s.spawn_restarting([] {});
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // supervised_name_of_a_number
// expect: spawn takes a task or another awaitable, and perhaps a name

coil::task<> work();

coil::task<> caller(coil::supervisor& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.spawn(work(), "name");
#else
    co_await s.spawn(work(), 5);
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // group_of_a_number
// expect: name the option: task_group<T> g({.max_children = 4})

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const coil::task_group<int> g({.max_children = 4});
#else
    const coil::task_group<int> g(4);
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // group_joined
// expect: await the results: while (auto result = co_await g.next())

coil::task<> caller(coil::task_group<int>& g) {
#if defined(COIL_EXPECT_OK)
    while (auto result = co_await g.next()) {
    }
#else
    g.join();
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // for_over_a_group
// expect: await the results: while (auto result = co_await g.next())

coil::task<> caller(coil::task_group<int>& g) {
#if defined(COIL_EXPECT_OK)
    while (auto result = co_await g.next()) {
    }
#else
    for (int n : g) {
        static_cast<void>(n);
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // concatenated_task
// expect: did you forget to co_await? Write co_await f() to get the result of a task

coil::task<std::string> text();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const std::string all = "a" + co_await text();
#else
    const std::string all = "a" + text();
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // yield_in_a_task
// expect: a task has one result, by co_return

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_return;
#else
    co_yield 5;
#endif
}
#endif

#if COIL_CASE == 8 // spawn_with_a_token_and_a_name
// expect: write co_spawn(f()), co_spawn(f(), "name") or co_spawn(f(), token)

coil::task<> work();

coil::task<> caller(coil::inplace_stop_source& source) {
#if defined(COIL_EXPECT_OK)
    coil::co_spawn(work(), source.get_token());
#else
    coil::co_spawn(work(), source.get_token(), "name");
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // context_runs_a_task
// expect: spawn the task first: ctx.co_spawn(f()); ctx.run(); or coil::run(f())

coil::task<> work();

coil::task<> caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    ctx.co_spawn(work());
#else
    ctx.run(work());
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // runtime_runs_a_task
// expect: run() takes no task

coil::task<> work();

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    rt.block_on(work());
#else
    rt.run(work());
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // runtime_blocks_on_a_function
// expect: block_on takes a task: call the function, rt.block_on(f())

coil::task<> work();

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    rt.block_on(work());
#else
    rt.block_on(work);
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // runtime_of_a_string
// expect: pass the number of contexts: runtime rt(4)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::runtime rt(4);
#else
    coil::runtime rt("4");
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // concurrent_without_a_limit
// expect: pass how many calls run at a time: for_each_concurrent(range, 8, f)

coil::task<> each(int);

coil::task<> caller(std::vector<int> all) {
#if defined(COIL_EXPECT_OK)
    co_await coil::for_each_concurrent(all, 8, each);
#else
    co_await coil::for_each_concurrent(all, each);
#endif
    co_return;
}
#endif
