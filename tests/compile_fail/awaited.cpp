// Awaits of things that are not awaitable, and results that are used before they are awaited.

#include <coil/coil.hpp>

#include <memory>
#include <string>
#include <vector>

#if COIL_CASE == 1 // await_mutex
// expect: lock it: co_await m.lock()
// only: clang

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    co_await m.lock();
    m.unlock();
#else
    co_await m;
#endif
}
#endif

#if COIL_CASE == 2 // await_channel
// expect: receive from it, co_await c.recv(), or send to it
// only: clang

coil::task<> caller(coil::channel<int>& c) {
#if defined(COIL_EXPECT_OK)
    co_await c.recv();
#else
    co_await c;
#endif
}
#endif

#if COIL_CASE == 3 // await_event
// expect: wait for it: co_await e.wait()
// only: clang

coil::task<> caller(coil::event& e) {
#if defined(COIL_EXPECT_OK)
    co_await e.wait();
#else
    co_await e;
#endif
}
#endif

#if COIL_CASE == 4 // await_scope
// expect: join it: co_await s.join()
// only: clang

coil::task<> caller(coil::scope& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.join();
#else
    co_await s;
#endif
}
#endif

#if COIL_CASE == 5 // await_acceptor
// expect: accept a connection: co_await ac.accept()
// only: clang

coil::task<> caller(coil::net::acceptor& ac) {
#if defined(COIL_EXPECT_OK)
    auto peer = co_await ac.accept();
    co_await peer.close();
#else
    auto peer = co_await ac;
#endif
}
#endif

#if COIL_CASE == 6 // await_a_generator
// expect: a generator is not awaited: iterate over it
// only: clang

coil::generator<int> numbers();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    for (int n : numbers()) {
        co_await coil::yield();
        static_cast<void>(n);
    }
#else
    co_await numbers();
#endif
}
#endif

#if COIL_CASE == 7 // await_an_async_generator
// expect: await its elements: co_await g.next()
// only: clang

coil::task<> caller(coil::async_generator<int>& all) {
#if defined(COIL_EXPECT_OK)
    co_await all.next();
#else
    co_await all;
#endif
}
#endif

#if COIL_CASE == 8 // for_over_an_async_generator
// expect: write while (auto x = co_await g.next()) instead of for
// only: clang

coil::task<> caller(coil::async_generator<int>& all) {
#if defined(COIL_EXPECT_OK)
    while (auto n = co_await all.next()) {
    }
#else
    for (int n : all) {
        co_await coil::yield();
    }
#endif
}
#endif

#if COIL_CASE == 9 // for_over_a_task
// expect: did you forget to co_await?
// only: clang
// mistake 1: `for (int n : f())`

coil::task<std::vector<int>> load();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    for (int n : co_await load()) {
        static_cast<void>(n);
    }
#else
    for (int n : load()) {
        static_cast<void>(n);
    }
    co_return;
#endif
}
#endif

#if COIL_CASE == 10 // dereferenced_task
// expect: did you forget to co_await?
// only: clang

coil::task<std::unique_ptr<int>> load();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    int n = *co_await load();
    static_cast<void>(n);
#else
    int n = *load();
    static_cast<void>(n);
    co_return;
#endif
}
#endif

#if COIL_CASE == 11 // member_of_a_dereferenced_task
// expect: did you forget to co_await?
// only: clang

coil::task<std::unique_ptr<std::string>> load();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto n = (co_await load())->size();
    static_cast<void>(n);
#else
    auto n = load()->size();
    static_cast<void>(n);
    co_return;
#endif
}
#endif

#if COIL_CASE == 12 // switch_of_a_task
// expect: statement requires expression of integer type
// only: clang
// mistake 1: `switch (f())`

coil::task<int> answer();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    switch (co_await answer()) {
    default:
        break;
    }
#else
    switch (answer()) {
    default:
        break;
    }
    co_return;
#endif
}
#endif

#if COIL_CASE == 13 // await_a_completed_call
// expect: this call has completed already: its result is not awaited
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    peer.set_no_delay(true).value();
    co_return;
#else
    co_await peer.set_no_delay(true);
#endif
}
#endif

#if COIL_CASE == 14 // await_a_token
// expect: a token is not awaited
// only: clang

coil::task<> caller(coil::inplace_stop_token stopping) {
#if defined(COIL_EXPECT_OK)
    coil::event stopped;
    coil::inplace_stop_callback callback(stopping, [&] { stopped.set(); });
    co_await stopped.wait();
#else
    co_await stopping;
#endif
}
#endif
