// Places in which the language allows no await.

#include <coil/coil.hpp>

#include <exception>

#if COIL_CASE == 1 // await_in_a_destructor
// expect: 'co_await' cannot be used in a destructor
// only: clang
// mistake 24: in a destructor

coil::task<> clean_up();

struct session {
#if defined(COIL_EXPECT_OK)
    ~session() { coil::co_spawn(clean_up()); }
#else
    ~session() { co_await clean_up(); }
#endif
};
#endif

#if COIL_CASE == 2 // await_in_a_handler
// expect: 'co_await' cannot be used in the handler of a try block
// only: clang
// mistake 24: in a catch block

coil::task<> work();
coil::task<> clean_up();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    std::exception_ptr error;
    try {
        co_await work();
    } catch (...) {
        error = std::current_exception();
    }
    if (error) {
        co_await clean_up();
    }
#else
    try {
        co_await work();
    } catch (...) {
        co_await clean_up();
    }
#endif
}
#endif

#if COIL_CASE == 3 // await_in_a_plain_function
// expect: this function cannot be a coroutine
// only: clang
// mistake 24: in a function that returns no coroutine type

coil::task<> work();

#if defined(COIL_EXPECT_OK)
void caller() { coil::run(work()); }
#else
void caller() { co_await work(); }
#endif
#endif

#if COIL_CASE == 4 // await_in_a_lambda
// expect: 'co_await' cannot be used in a function with a deduced return type
// only: clang
// mistake 24: in a lambda without `-> task<>`

coil::task<> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto f = []() -> coil::task<> { co_await work(); };
#else
    auto f = []() { co_await work(); };
#endif
    co_await f();
}
#endif
