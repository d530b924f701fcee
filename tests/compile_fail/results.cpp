// Wrong results of coroutines.

#include <coil/coil.hpp>

#include <memory>
#include <string>

#if COIL_CASE == 1 // returned_task
// expect: did you forget to co_await? Write co_return co_await f()
// mistake 1: `co_return f();`

coil::task<int> answer();

coil::task<int> caller() {
#if defined(COIL_EXPECT_OK)
    co_return co_await answer();
#else
    co_return answer();
#endif
}
#endif

#if COIL_CASE == 2 // returned_operation
// expect: did you forget to co_await? Write co_return co_await f()
// mistake 2: `co_return peer.send(buf);`

coil::task<int> caller(coil::net::socket& peer, std::string& text) {
#if defined(COIL_EXPECT_OK)
    co_return co_await peer.send(text);
#else
    co_return peer.send(text);
#endif
}
#endif

#if COIL_CASE == 3 // result_of_another_type
// expect: the value cannot be converted to T, the result of this task<T>

coil::task<std::string> caller(int n) {
#if defined(COIL_EXPECT_OK)
    co_return std::to_string(n);
#else
    co_return n;
#endif
}
#endif

#if COIL_CASE == 4 // result_that_is_not_copied
// expect: the value cannot be converted to T, the result of this task<T>

coil::task<std::unique_ptr<int>> caller() {
#if defined(COIL_EXPECT_OK)
    auto p = std::make_unique<int>(1);
    co_return p;
#else
    const auto p = std::make_unique<int>(1);
    co_return p;
#endif
}
#endif

#if COIL_CASE == 5 // return_without_co
// expect: a coroutine returns its result by co_return
// only: clang

coil::task<int> caller() {
#if defined(COIL_EXPECT_OK)
    co_return 3;
#else
    return 3;
#endif
}
#endif

#if COIL_CASE == 6 // result_with_a_large_alignment
// expect: the result of a task is aligned to 64 bytes at most: return a std::unique_ptr

struct alignas(128) table {
    char bytes[128] = {};
};

#if defined(COIL_EXPECT_OK)
coil::task<std::unique_ptr<table>> caller() { co_return std::make_unique<table>(); }
#else
coil::task<table> caller() { co_return table(); }
#endif
#endif

#if COIL_CASE == 7 // returned_buffer_of_a_local
// expect: the result would refer to a local variable or a temporary
// mistake 18: a `task<const_buffer>` returns a local string

#if defined(COIL_EXPECT_OK)
coil::task<coil::const_buffer> caller(std::string& text) { co_return text; }
#else
coil::task<coil::const_buffer> caller() {
    std::string text = "text";
    co_return text;
}
#endif
#endif

#if COIL_CASE == 8 // returned_mutable_buffer_of_a_local
// expect: the result would refer to a local variable or a temporary

#if defined(COIL_EXPECT_OK)
coil::task<coil::mutable_buffer> caller(char* data, int n) {
    co_return coil::mutable_buffer(data, n);
}
#else
coil::task<coil::mutable_buffer> caller() {
    char data[8];
    co_return data;
}
#endif
#endif

#if COIL_CASE == 9 // parameter_aligned_to_more_than_a_frame
// expect: a parameter of a coroutine is aligned to 64 bytes at most

struct alignas(128) block {
    char bytes[128];
};

#if defined(COIL_EXPECT_OK)
coil::task<> caller(block& b) {
    block* const own = new block(b); // not a local
    co_await coil::yield();
    delete own;
}
#else
coil::task<> caller(block b) {
    (void)b;
    co_await coil::yield();
}
#endif
#endif
