// Combinations of tasks and operations that outlive what these refer to: COIL_CHECK_LIFETIMES.

#include <coil/coil.hpp>

#include <chrono>
#include <string>
#include <utility>

using namespace std::chrono_literals;

#if COIL_CASE == 1 // limited_task
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: `auto t = timeout(f(std::string("x")), 1s);`

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    auto t = timeout(f(text), 1s);
    co_await std::move(t);
#else
    auto t = timeout(f(std::string("x")), 1s);
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 2 // task_limited_by_a_time
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    auto t = timeout_at(f(text), std::chrono::steady_clock::now());
    co_await std::move(t);
#else
    auto t = timeout_at(f(std::string("x")), std::chrono::steady_clock::now());
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 3 // task_with_a_deadline
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    auto t = with_deadline(std::chrono::steady_clock::now(), f(text));
    co_await std::move(t);
#else
    auto t = with_deadline(std::chrono::steady_clock::now(), f(std::string("x")));
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 4 // member_of_when_all
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: `auto t = when_all(f(std::string("x")), g());`

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    auto t = when_all(f(text), f(text));
    co_await std::move(t);
#else
    auto t = when_all(f(std::string("x")), f(text));
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 5 // member_of_when_any
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    auto t = when_any(f(text), f(text));
    co_await std::move(t);
#else
    auto t = when_any(f(std::string("x")), f(text));
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 6 // shielded_task
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    auto t = shield(f(text));
    co_await std::move(t);
#else
    auto t = shield(f(std::string("x")));
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 7 // task_on_an_executor
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    auto t = on(pool, f(text));
    co_await std::move(t);
#else
    auto t = on(pool, f(std::string("x")));
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 8 // spawned_on_an_executor
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: `scope.spawn(on(pool, f(std::string("x"))))`

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(on(pool, f(text)));
    co_await s.join();
#else
    coil::scope s;
    s.spawn(on(pool, f(std::string("x"))));
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 9 // spawned_with_a_limit
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(timeout(f(text), 1s));
    co_await s.join();
#else
    coil::scope s;
    s.spawn(timeout(f(std::string("x")), 1s));
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 10 // supervised_on_an_executor
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    coil::supervisor s;
    s.spawn(on(pool, f(text)));
    co_await s.join();
#else
    coil::supervisor s;
    s.spawn(on(pool, f(std::string("x"))));
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 11 // spawned_operation_over_a_temporary
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 5, warning: `scope.spawn(peer.send(std::string("x")))`

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(peer.send(text));
    co_await s.join();
#else
    coil::scope s;
    s.spawn(peer.send(std::string("x")));
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 12 // limited_send_all
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 5, warning: `auto op = timeout(peer.send_all(std::string("x")), 1s);`

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    auto op = timeout(peer.send_all(text), 1s);
    co_await std::move(op);
#else
    auto op = timeout(peer.send_all(std::string("x")), 1s);
    co_await std::move(op);
#endif
}
#endif

#if COIL_CASE == 13 // chain
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 5, warning: `auto op = peer.send(std::string("x")) && peer.recv(buf);`

coil::task<> f(const std::string& text);

coil::task<> caller(coil::net::socket& peer, coil::thread_pool& pool, std::string text) {
    static_cast<void>(peer);
    static_cast<void>(pool);
#if defined(COIL_EXPECT_OK)
    char buf[8];
    auto op = peer.send(text) && peer.recv(buf);
    co_await op;
#else
    char buf[8];
    auto op = peer.send(std::string("x")) && peer.recv(buf);
    co_await op;
#endif
}
#endif
