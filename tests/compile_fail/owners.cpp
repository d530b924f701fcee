// Copies of objects that have one owner, and results that were not awaited.

#include <coil/coil.hpp>

#include <chrono>
#include <csignal>
#include <tuple>
#include <utility>

#if COIL_CASE == 1 // copied_socket
// expect: a socket has one owner: write std::move(s)

coil::task<> session(coil::net::socket peer);

coil::task<> caller(coil::net::socket peer) {
#if defined(COIL_EXPECT_OK)
    co_await session(std::move(peer));
#else
    co_await session(peer);
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // assigned_socket
// expect: a socket has one owner: write std::move(s)

coil::task<> caller(coil::net::socket peer, coil::net::socket& to) {
#if defined(COIL_EXPECT_OK)
    to = std::move(peer);
#else
    to = peer;
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // captured_socket
// expect: a socket has one owner: write std::move(s)

coil::task<> caller(coil::net::socket peer) {
#if defined(COIL_EXPECT_OK)
    auto talk = [s = std::move(peer)] { return s.native_handle(); };
    static_cast<void>(talk());
#else
    auto talk = [peer] { return peer.native_handle(); };
    static_cast<void>(talk());
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // copied_file
// expect: a file has one owner: write std::move(f)

coil::task<> use(coil::fs::file log);

coil::task<> caller(coil::fs::file log) {
#if defined(COIL_EXPECT_OK)
    co_await use(std::move(log));
#else
    co_await use(log);
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // copied_handle
// expect: a task is joined once: write std::move(h), or co_await h
// only: clang

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto h = coil::spawn(f());
    auto other = std::move(h);
    co_await other;
#else
    auto h = coil::spawn(f());
    auto other = h;
    co_await other;
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // copied_generator
// expect: a generator is read once: write std::move(g)

coil::generator<int> numbers();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto all = numbers();
    auto other = std::move(all);
    static_cast<void>(other.begin());
#else
    auto all = numbers();
    auto other = all;
    static_cast<void>(other.begin());
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // copied_async_generator
// expect: a generator is read once: write std::move(g)
// only: clang

coil::async_generator<int> numbers();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto all = numbers();
    auto other = std::move(all);
    co_await other.next();
#else
    auto all = numbers();
    auto other = all;
    co_await other.next();
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // index_of_a_generator
// expect: a generator has no indexes: write for (auto&& x : g)
// only: clang

coil::generator<int> numbers();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(*numbers().begin());
#else
    static_cast<void>(numbers()[0]);
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // handle_as_its_result
// expect: did you forget to co_await? Only that gives the result
// only: clang
// mistake 2: `int n = h;` with a join_handle

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto h = coil::spawn(f());
    int n = co_await h;
    static_cast<void>(n);
#else
    auto h = coil::spawn(f());
    int n = h;
    static_cast<void>(n);
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // handle_as_a_condition
// expect: did you forget to co_await? Only that gives the result
// only: clang

coil::task<bool> ready();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto h = coil::spawn(ready());
    if (co_await h) {
    }
#else
    auto h = coil::spawn(ready());
    if (h) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // bound_task
// expect: did you forget to co_await? Write auto [a, b] = co_await f()
// mistake 1: `auto [a, b] = f();`

coil::task<std::pair<int, int>> two();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto [a, b] = co_await two();
    static_cast<void>(a + b);
#else
    auto [a, b] = two();
    static_cast<void>(a + b);
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // bound_when_all
// expect: did you forget to co_await? Write auto [a, b] = co_await when_all(f(), g())
// mistake 2: `auto [a, b] = when_all(f(), g());`

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto [a, b] = co_await coil::when_all(f(), f());
    static_cast<void>(a + b);
#else
    auto [a, b] = coil::when_all(f(), f());
    static_cast<void>(a + b);
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // tuple_of_when_all
// expect: did you forget to co_await? Only that gives the result
// only: clang

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    std::tuple<int, int> both = co_await coil::when_all(f(), f());
    static_cast<void>(both);
#else
    std::tuple<int, int> both = coil::when_all(f(), f());
    static_cast<void>(both);
#endif
    co_return;
}
#endif
