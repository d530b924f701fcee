// Arguments in another order or of another kind, and types that a template does not accept.

#include <coil/coil.hpp>

#include <mutex>
#include <vector>

#if COIL_CASE == 1 // copy_to_nowhere
// expect: pass both paths: copy(from, to)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::fs::copy("a", "b");
#else
    co_await coil::fs::copy("a");
#endif
}
#endif

#if COIL_CASE == 2 // copy_with_options_as_text
// expect: options are values of copy_options: copy(from, to, copy_options::recursive)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::fs::copy("a", "b", coil::fs::copy_options::recursive);
#else
    co_await coil::fs::copy("a", "b", "recursive");
#endif
}
#endif

#if COIL_CASE == 3 // copy_file_to_nowhere
// expect: pass both paths: copy_file(from, to)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::fs::copy_file("a", "b");
#else
    co_await coil::fs::copy_file("a");
#endif
}
#endif

#if COIL_CASE == 4 // copy_file_with_options_as_a_number
// expect: options are values of copy_options: copy_file(from, to, copy_options

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::fs::copy_file("a", "b", coil::fs::copy_options::overwrite_existing);
#else
    co_await coil::fs::copy_file("a", "b", 1);
#endif
}
#endif

#if COIL_CASE == 5 // rename_to_nowhere
// expect: pass both paths: rename(from, to)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::fs::rename("a", "b");
#else
    co_await coil::fs::rename("a");
#endif
}
#endif

#if COIL_CASE == 6 // permissions_as_a_number
// expect: permissions are values of perms: permissions(p, perms(0644))

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::fs::permissions("a", coil::fs::perms(0644));
#else
    co_await coil::fs::permissions("a", 0644);
#endif
}
#endif

#if COIL_CASE == 7 // number_as_an_executor
// expect: an any_executor is made from an executor, such as a thread_pool
// only: clang

void caller(coil::thread_pool& pool) {
#if defined(COIL_EXPECT_OK)
    coil::any_executor ex = pool;
#else
    static_cast<void>(pool);
    coil::any_executor ex = 5;
#endif
}
#endif

#if COIL_CASE == 8 // pointer_as_an_executor
// expect: an any_executor is made from an executor, such as a thread_pool
// only: clang

void caller(coil::thread_pool& pool) {
#if defined(COIL_EXPECT_OK)
    coil::any_executor ex = pool;
#else
    coil::any_executor ex = &pool;
#endif
}
#endif

#if COIL_CASE == 9 // async_task_without_an_executor
// expect: write async_task<T, Executor> with an executor, such as thread_pool

#if defined(COIL_EXPECT_OK)
coil::async_task<int, coil::new_thread_executor> caller() { co_return 1; }
#else
coil::async_task<int, int> caller() { co_return 1; }
#endif
#endif

#if COIL_CASE == 10 // task_on_a_pool
// expect: a task is awaited on an executor: co_await on(pool, f())

coil::task<> f();

coil::task<> caller(coil::thread_pool& pool) {
#if defined(COIL_EXPECT_OK)
    co_await on(pool, f());
#else
    pool.spawn(f());
    co_return;
#endif
}
#endif

#if COIL_CASE == 11 // join_of_a_handle
// expect: await the handle, co_await h; outside of a coroutine, h.get()

coil::task<> caller(coil::join_handle<> h) {
#if defined(COIL_EXPECT_OK)
    co_await h;
#else
    h.join();
    co_return;
#endif
}
#endif

#if COIL_CASE == 12 // context_by_value
// expect: pass a reference to it: io_context& ctx
// only: clang

void caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    coil::io_context& same = ctx;
    static_cast<void>(same);
#else
    coil::io_context copy = ctx;
#endif
}
#endif

#if COIL_CASE == 13 // context_awaited
// expect: run tasks on it: ctx.co_spawn(f()); or continue on it: co_await resume_on(ctx)
// only: clang

coil::task<> caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    co_await coil::resume_on(ctx);
#else
    co_await ctx;
#endif
}
#endif

#if COIL_CASE == 14 // context_of_a_name
// expect: name the option: io_context ctx({.entries = 64})

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::io_context ctx({.entries = 64});
#else
    coil::io_context ctx("main");
#endif
}
#endif

#if COIL_CASE == 15 // context_of_runtime_options
// expect: name the option: io_context ctx({.entries = 64})

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::io_context ctx(coil::io_context_options{});
#else
    coil::io_context ctx(coil::runtime_options{});
#endif
}
#endif

#if COIL_CASE == 16 // callback_without_a_token
// expect: pass the token as well: inplace_stop_callback on_stop(token, f)
// only: clang

void caller(coil::inplace_stop_token token) {
#if defined(COIL_EXPECT_OK)
    coil::inplace_stop_callback on_stop(token, [] {});
#else
    static_cast<void>(token);
    coil::inplace_stop_callback on_stop([] {});
#endif
}
#endif

#if COIL_CASE == 17 // callback_of_a_source
// expect: pass the token of the stop source: inplace_stop_callback on_stop(source
// only: clang

void caller(coil::inplace_stop_source& source) {
#if defined(COIL_EXPECT_OK)
    coil::inplace_stop_callback on_stop(source.get_token(), [] {});
#else
    coil::inplace_stop_callback on_stop(source, [] {});
#endif
}
#endif

#if COIL_CASE == 18 // callback_before_the_token
// expect: the token comes first: inplace_stop_callback on_stop(token, f)
// only: clang

void caller(coil::inplace_stop_token token) {
#if defined(COIL_EXPECT_OK)
    coil::inplace_stop_callback on_stop(token, [] {});
#else
    coil::inplace_stop_callback on_stop([] {}, token);
#endif
}
#endif

#if COIL_CASE == 19 // keys_before_the_width
// expect: the width comes first, then a range: interleave(16, keys, f, out)

coil::lookup<int> look(int key);

void caller(std::vector<int>& keys, std::vector<int>& out) {
#if defined(COIL_EXPECT_OK)
    coil::interleave(8, keys, look, out);
#else
    coil::interleave(keys, 8, look, out);
#endif
}
#endif

#if COIL_CASE == 20 // lookups_before_the_keys
// expect: the width comes first, then a range: interleave(16, keys, f, out)

coil::lookup<int> look(int key);

void caller(std::vector<int>& keys, std::vector<int>& out) {
#if defined(COIL_EXPECT_OK)
    coil::interleave(8, keys, look, out);
#else
    coil::interleave(8, look, keys, out);
#endif
}
#endif

#if COIL_CASE == 21 // standard_guard_of_a_semaphore
// expect: a semaphore has a guard of its own: auto permit = co_await s.acquire_guard()

coil::task<> caller(coil::counting_semaphore<>& s) {
#if defined(COIL_EXPECT_OK)
    auto permit = co_await s.acquire_guard();
#else
    std::lock_guard permit(s);
    co_return;
#endif
}
#endif

#if COIL_CASE == 22 // condition_that_is_a_value
// expect: pass a function, which is called again: cv.wait(m, [&] { return ready; })

coil::task<> caller(coil::condition_variable& cv, coil::mutex& m, bool ready) {
#if defined(COIL_EXPECT_OK)
    co_await cv.wait(m, [&] { return ready; });
#else
    co_await cv.wait(m, ready);
#endif
}
#endif

#if COIL_CASE == 23 // task_of_an_array
// expect: a task returns an object, a T& or nothing: std::array<int, 4> for int[4], T for T&&

#if defined(COIL_EXPECT_OK)
coil::task<std::vector<int>> caller() { co_return std::vector<int>(4); }
#else
coil::task<int[4]> caller() {
    int all[4]{};
    co_return all;
}
#endif
#endif
