// Combinators, scope and shield.

#include <coil/coil.hpp>

#include <vector>

#if COIL_CASE == 1 // forgotten_await_shield
// expect: did you forget to co_await?

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::shield(work());
#else
    coil::shield(work());
    co_return;
#endif
}
#endif

#if COIL_CASE == 2 // forgotten_await_when_all
// expect: did you forget to co_await?

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::when_all(work(), work());
#else
    coil::when_all(work(), work());
    co_return;
#endif
}
#endif

#if COIL_CASE == 3 // forgotten_await_when_any
// expect: did you forget to co_await?

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::when_any(work(), coil::timeout(1s));
#else
    coil::when_any(work(), coil::timeout(1s));
    co_return;
#endif
}
#endif

#if COIL_CASE == 4 // function_in_when_all
// expect: this is a function, not an awaitable: call it, f()

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::when_all(work(), work());
#else
    co_await coil::when_all(work, work());
#endif
}
#endif

#if COIL_CASE == 5 // generator_in_when_all
// expect: an async_generator cannot be awaited: pass g.next()

coil::task<int> work() { co_return 1; }
coil::async_generator<int> numbers() { co_yield 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto all = numbers();
    co_await coil::when_all(all.next(), work());
#else
    auto all = numbers();
    co_await coil::when_all(all, work());
#endif
}
#endif

#if COIL_CASE == 6 // lambda_in_scope
// expect: this is a function, not an awaitable: call it, f()

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn([]() -> coil::task<> { co_return; }());
    co_await s.join();
#else
    coil::scope s;
    s.spawn([]() -> coil::task<> { co_return; });
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 7 // lambda_in_when_any
// expect: this is a function, not an awaitable: call it, f()

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::when_any([]() -> coil::task<> { co_return; }());
#else
    co_await coil::when_any([]() -> coil::task<> { co_return; });
#endif
}
#endif

#if COIL_CASE == 8 // named_task_in_scope
// expect: a task is awaited or spawned once: write std::move(t), or f() directly
// only: clang
// mistake 6: `scope.spawn(t)` with a named task

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
#endif

#if COIL_CASE == 9 // named_task_in_when_all
// expect: a task is awaited once
// mistake 6: `when_all(t, ...)` with a named task

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    auto t = work();
    co_await coil::when_all(std::move(t), coil::timeout(1s));
#else
    auto t = work();
    co_await coil::when_all(t, coil::timeout(1s));
#endif
}
#endif

#if COIL_CASE == 10 // named_tasks_in_when_all
// expect: a task is awaited once

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    std::vector<coil::task<int>> tasks;
    co_await coil::when_all(std::move(tasks));
#else
    std::vector<coil::task<int>> tasks;
    co_await coil::when_all(tasks);
#endif
}
#endif

#if COIL_CASE == 11 // range_beside_task
// expect: a range of awaitables must be the only argument of when_all or when_any

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
#endif

#if COIL_CASE == 12 // shield_twice
// expect: shield(...) is awaited once: write co_await std::move(x), or await it directly

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto shielded = coil::shield(work());
    co_await std::move(shielded);
#else
    auto shielded = coil::shield(work());
    co_await shielded;
#endif
}
#endif

#if COIL_CASE == 13 // unnamed_eager_in_when_all
// expect: an awaitable that cannot be moved is passed by name: auto x = eager(op); when_all(x, ...)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(coil::io::nop());
    co_await coil::when_all(pending, coil::io::nop());
#else
    co_await coil::when_all(coil::eager(coil::io::nop()), coil::io::nop());
#endif
}
#endif

#if COIL_CASE == 14 // when_all_twice
// expect: when_all(...) is awaited once: write co_await std::move(x), or await it directly

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    auto both = coil::when_all(work(), work());
    co_await std::move(both);
#else
    auto both = coil::when_all(work(), work());
    co_await both;
#endif
}
#endif

#if COIL_CASE == 15 // when_any_of_nothing
// expect: when_any() without arguments would wait forever

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::when_any(work());
#else
    co_await coil::when_any();
#endif
}
#endif
