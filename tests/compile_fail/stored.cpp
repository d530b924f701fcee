// Operations that refer to a temporary buffer.

#include <coil/coil.hpp>

#include <chrono>
#include <string>
#include <string_view>

#if COIL_CASE == 1 // temporary_in_a_stored_operation
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto op = io::write(fd, std::string("x"));`

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::io::write(fd, text);
    co_await op;
#else
    auto op = coil::io::write(fd, std::string("text"));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 2 // temporary_in_a_stored_limited_operation
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto op = timeout(io::write(fd, std::string("x")), 1s);`

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = timeout(coil::io::write(fd, text), std::chrono::seconds(1));
    co_await op;
#else
    auto op = timeout(coil::io::write(fd, std::string("text")), std::chrono::seconds(1));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 3 // temporary_in_a_stored_eager_operation
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto op = eager(io::write(fd, std::string("x")));`

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::eager(coil::io::write(fd, text));
    co_await op;
#else
    auto op = coil::eager(coil::io::write(fd, std::string("text")));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 4 // temporary_in_a_stored_eager_limited_operation
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::eager(timeout(coil::io::write(fd, "literal"), std::chrono::seconds(1)));
    co_await op;
#else
    auto op =
        coil::eager(timeout(coil::io::write(fd, std::string("text")), std::chrono::seconds(1)));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 5 // temporary_in_a_stored_buffer
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `const_buffer b = std::string("x");`

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    const coil::const_buffer data = std::string_view(text).substr(1);
    co_await coil::io::write(fd, data);
#else
    const coil::const_buffer data = std::string("text");
    co_await coil::io::write(fd, data);
#endif
}
#endif
