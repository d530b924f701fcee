// Lookups and interleave.

#include <coil/coil.hpp>

#include <string>
#include <vector>

#if COIL_CASE == 1 // operation_in_lookup
// expect: a lookup waits only for memory: co_await prefetch(p) or another lookup

#if defined(COIL_EXPECT_OK)
coil::task<int> find(int key) {
#else
coil::lookup<int> find(int key) {
#endif
    co_await coil::io::nop();
    co_return key;
}
#endif

#if COIL_CASE == 2 // task_in_lookup
// expect: a lookup waits only for memory: co_await prefetch(p) or another lookup

#if defined(COIL_EXPECT_OK)
coil::lookup<int> answer();
#else
coil::task<int> answer();
#endif

coil::lookup<int> find(int) { co_return co_await answer(); }
#endif

#if COIL_CASE == 3 // prefetch_in_task
// expect: prefetch(p) is awaited only in a coroutine of type lookup<R>

#if defined(COIL_EXPECT_OK)
coil::lookup<> find(const int* p) {
#else
coil::task<> find(const int* p) {
#endif
    co_await coil::prefetch(p);
}
#endif

#if COIL_CASE == 4 // lookup_in_task
// expect: a lookup is not awaited by a task or another coroutine: pass the function to interleave()

coil::lookup<int> find(int key);

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    std::vector<int> results(1);
    co_await coil::async_interleave(1, std::vector{1}, find, results);
#else
    co_await find(1);
#endif
}
#endif

#if COIL_CASE == 5 // await_lookup_lvalue
// expect: a lookup is awaited once

coil::lookup<int> find(int key);

coil::lookup<int> caller() {
    auto found = find(1);
#if defined(COIL_EXPECT_OK)
    co_return co_await std::move(found);
#else
    co_return co_await found;
#endif
}
#endif

#if COIL_CASE == 6 // forgotten_await_prefetch
// expect: did you forget to co_await?

coil::lookup<int> find(const int* p) {
#if defined(COIL_EXPECT_OK)
    co_await coil::prefetch(p);
#else
    coil::prefetch(p);
#endif
    co_return *p;
}
#endif

#if COIL_CASE == 7 // function_without_lookup
// expect: the function of interleave returns a lookup

void run(std::vector<int>& results) {
#if defined(COIL_EXPECT_OK)
    coil::interleave(
        16, std::vector{1}, [](int key) -> coil::lookup<int> { co_return key; }, results);
#else
    coil::interleave(16, std::vector{1}, [](int key) { return key; }, results);
#endif
}
#endif

#if COIL_CASE == 8 // results_dropped
// expect: these lookups have results: call interleave(width, keys, f, out)

coil::lookup<int> find(int key);

void run([[maybe_unused]] std::vector<int>& results) {
#if defined(COIL_EXPECT_OK)
    coil::interleave(16, std::vector{1}, find, results);
#else
    coil::interleave(16, std::vector{1}, find);
#endif
}
#endif

#if COIL_CASE == 9 // results_to_a_temporary
// expect: the results would be written to a temporary: pass a named range

coil::lookup<int> find(int key);

void run([[maybe_unused]] std::vector<int>& results) {
#if defined(COIL_EXPECT_OK)
    coil::interleave(16, std::vector{1}, find, results);
#else
    coil::interleave(16, std::vector{1}, find, std::vector<int>(1));
#endif
}
#endif

#if COIL_CASE == 10 // dangling_result
// expect: the result would refer to a local variable or a temporary

#if defined(COIL_EXPECT_OK)
coil::lookup<std::string> find() {
#else
coil::lookup<const std::string&> find() {
#endif
    co_return std::string("x");
}
#endif

#if COIL_CASE == 11 // results_not_assignable
// expect: interleave writes its results to a random access range

coil::lookup<int> find(int key);

void run([[maybe_unused]] std::vector<int>& results) {
#if defined(COIL_EXPECT_OK)
    coil::interleave(16, std::vector{1}, find, results);
#else
    int none = 0;
    coil::interleave(16, std::vector{1}, find, none);
#endif
}
#endif
