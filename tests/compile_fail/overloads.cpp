// Calls that no overload accepts: an argument is missing, misspelt, or of another type.

#include <coil/coil.hpp>

#include <chrono>
#include <string>
#include <utility>

#if COIL_CASE == 1 // stop_source_before_the_work
// expect: the work comes first, then the token of the stop source: with_stop_token(work,
// source.get_token())

coil::task<> f();

coil::task<> caller(coil::inplace_stop_source& source) {
#if defined(COIL_EXPECT_OK)
    co_await coil::with_stop_token(f(), source.get_token());
#else
    co_await coil::with_stop_token(source, f());
#endif
}
#endif

#if COIL_CASE == 2 // token_forgotten
// expect: pass the token as well: with_stop_token(work, source.get_token())

coil::task<> f();

coil::task<> caller(coil::inplace_stop_source& source) {
#if defined(COIL_EXPECT_OK)
    co_await coil::with_stop_token(f(), source.get_token());
#else
    static_cast<void>(source);
    co_await coil::with_stop_token(f());
#endif
}
#endif

#if COIL_CASE == 3 // broadcast_of_another_type
// expect: this cannot be converted to T, the element of this broadcast<T>

coil::task<> caller(coil::broadcast<std::string>& b) {
#if defined(COIL_EXPECT_OK)
    b.send("text");
    co_return;
#else
    b.send(5);
    co_return;
#endif
}
#endif

#if COIL_CASE == 4 // when_any_of_a_braced_list
// expect: write the awaitables without braces: when_any(f(), g())

coil::task<> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::when_any(f(), f());
#else
    co_await coil::when_any({f(), f()});
#endif
}
#endif

#if COIL_CASE == 5 // barrier_without_participants
// expect: pass the number of participants: barrier step(3)
// only: clang

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::barrier b(3);
    co_await b.arrive_and_wait();
#else
    coil::barrier b;
    co_await b.arrive_and_wait();
#endif
}
#endif

#if COIL_CASE == 6 // mistyped_option_of_a_context
// expect: no matching constructor for initialization of 'coil::io_context'
// only: clang

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::io_context ctx({.entries = 64});
    co_return;
#else
    coil::io_context ctx({.entires = 64});
    co_return;
#endif
}
#endif

#if COIL_CASE == 7 // mistyped_option_of_a_runtime
// expect: no matching constructor for initialization of 'coil::runtime'
// only: clang

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::runtime rt({.contexts = 2});
    co_return;
#else
    coil::runtime rt({.contxts = 2});
    co_return;
#endif
}
#endif

#if COIL_CASE == 8 // mistyped_option_of_a_supervisor
// expect: no matching constructor for initialization of 'coil::supervisor'
// only: clang

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::supervisor s({.max_children = 2});
    co_await s.join();
#else
    coil::supervisor s({.max_childern = 2});
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 9 // mistyped_option_of_a_server
// expect: no matching function for call to 'serve'
// only: clang

coil::task<> session(coil::net::socket);

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, 80, session, {.max_connections = 5});
#else
    co_await coil::net::serve(rt, 80, session, {.max_conections = 5});
#endif
}
#endif

#if COIL_CASE == 10 // mistyped_option_of_a_server_here
// expect: no matching function for call to 'serve'
// only: clang

coil::task<> session(coil::net::socket);

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(80, session, {.max_connections = 5});
#else
    co_await coil::net::serve(80, session, {.max_conections = 5});
#endif
}
#endif

#if COIL_CASE == 11 // server_without_a_handler
// expect: pass the handler of the connections: serve(rt, 8080, session)

coil::task<> session(coil::net::socket);

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, 80, session);
#else
    co_await coil::net::serve(rt, 80);
#endif
}
#endif

#if COIL_CASE == 12 // server_with_a_separate_port
// expect: the address and the port are one argument: serve(rt, "0.0.0.0:8080", session)

coil::task<> session(coil::net::socket);

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, "0.0.0.0:80", session);
#else
    co_await coil::net::serve(rt, "0.0.0.0", 80, session);
#endif
}
#endif

#if COIL_CASE == 13 // connect_to_a_port
// expect: connect takes the host and the port: connect("example.org", 443)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::connect("localhost", 80);
#else
    co_await coil::net::connect(80);
#endif
}
#endif

#if COIL_CASE == 14 // grace_as_text
// expect: pass a duration with a unit: co_await s.join(5s)

coil::task<> caller(coil::supervisor& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.join(std::chrono::seconds(1));
#else
    co_await s.join("1s");
#endif
}
#endif

#if COIL_CASE == 15 // wait_without_a_mutex
// expect: pass the mutex that the caller has locked: co_await cv.wait(m)

coil::task<> caller(coil::condition_variable& cv, coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    co_await cv.wait(m);
#else
    static_cast<void>(m);
    co_await cv.wait();
#endif
}
#endif

#if COIL_CASE == 16 // pool_by_name
// expect: pass the number of threads: thread_pool pool(4)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::thread_pool pool(4);
    co_return;
#else
    coil::thread_pool pool("workers");
    co_return;
#endif
}
#endif

#if COIL_CASE == 17 // resume_on_a_number
// expect: pass the context or executor on which to continue: resume_on(pool)

coil::task<> caller(coil::thread_pool& pool) {
#if defined(COIL_EXPECT_OK)
    co_await coil::resume_on(pool);
#else
    static_cast<void>(pool);
    co_await coil::resume_on(5);
#endif
}
#endif

#if COIL_CASE == 18 // resume_on_nothing
// expect: pass the context or executor on which to continue: resume_on(pool)

coil::task<> caller(coil::thread_pool& pool) {
#if defined(COIL_EXPECT_OK)
    co_await coil::resume_on(pool);
#else
    static_cast<void>(pool);
    co_await coil::resume_on();
#endif
}
#endif

#if COIL_CASE == 19 // asyncify_of_a_value
// expect: asyncify takes a function; a task is awaited, or runs on(executor, f())

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::asyncify([] {});
#else
    co_await coil::asyncify(5);
#endif
}
#endif

#if COIL_CASE == 20 // task_pushed
// expect: push takes a coroutine_handle: loop.spawn(f()) takes a task

coil::task<> f();

coil::task<> caller(coil::run_loop& loop) {
#if defined(COIL_EXPECT_OK)
    loop.spawn(f());
    co_return;
#else
    loop.push(f());
    co_return;
#endif
}
#endif

#if COIL_CASE == 21 // task_executed
// expect: execute takes a function; a task is awaited on an executor: co_await on(ex, f())

coil::task<> f();

coil::task<> caller(coil::looper_executor& ex) {
#if defined(COIL_EXPECT_OK)
    co_await coil::on(ex, f());
#else
    ex.execute(f());
    co_return;
#endif
}
#endif

#if COIL_CASE == 22 // copy_of_what_holds_a_task
// expect: call to implicitly-deleted copy constructor of 'job'
// only: clang

struct job {
    coil::task<> work;
    int number = 0;
};
void start(job);

void caller(job& j) {
#if defined(COIL_EXPECT_OK)
    start(std::move(j));
#else
    start(j);
#endif
}
#endif
