// Arguments that are missing, in the wrong order, or of another kind.

#include <coil/coil.hpp>

#include <chrono>
#include <csignal>
#include <tuple>
#include <utility>

#if COIL_CASE == 1 // limit_forgotten
// expect: pass the limit: timeout(work, 3s)

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(f(), std::chrono::seconds(1));
#else
    co_await coil::timeout(f());
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // limit_as_text
// expect: pass the limit as a duration: timeout(work, 3s)

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(f(), std::chrono::seconds(1));
#else
    co_await coil::timeout(f(), "1s");
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // run_with_threads
// expect: one thread runs the task; a runtime has several: runtime rt; rt.block_on(f())

coil::task<> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::run(f());
#else
    coil::run(f(), 4);
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // acceptor_without_an_address
// expect: an acceptor has an address: acceptor(8080)
// only: clang

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::net::acceptor ac(8080);
#else
    coil::net::acceptor ac;
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // acceptor_with_a_backlog
// expect: name the option: acceptor(8080, {.backlog = 128})

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::net::acceptor ac(8080, {.backlog = 128});
#else
    coil::net::acceptor ac(8080, 128);
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // signals_by_name
// expect: signals are numbers: signal_set{SIGINT, SIGTERM}

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const coil::signal_set signals{SIGINT};
#else
    const coil::signal_set signals{"SIGINT"};
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // server_limit_as_a_number
// expect: name the option: serve(rt, 8080, session, {.max_connections = 1000})

coil::task<> session(coil::net::socket peer);

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, 8080, session, {.max_connections = 1000});
#else
    co_await coil::net::serve(rt, 8080, session, 1000);
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // server_address_behind_the_handler
// expect: the address comes before the handler: serve(rt, 8080, session)

coil::task<> session(coil::net::socket peer);

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, 8080, session);
#else
    co_await coil::net::serve(rt, session, 8080);
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // server_unawaited
// expect: did you forget to co_await?

coil::task<> session(coil::net::socket peer);

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(8080, session);
#else
    coil::net::serve(8080, session);
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // asyncify_of_a_task
// expect: asyncify takes a function; a task is awaited, or runs on(executor, f())

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::asyncify([] { return 1; });
#else
    co_await coil::asyncify(f());
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // shield_of_a_function
// expect: this is a function, not an awaitable: call it, f()

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::shield(f());
#else
    co_await coil::shield(f);
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // length_as_int_flags
// expect: the argument after the buffer is the flags; the length is part of the buffer
// only: clang
// mistake 21, warning: `peer.send("hello", 5)`

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    co_await peer.send("hello");
#else
    co_await peer.send("hello", 5);
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // length_as_flags_of_recv
// expect: the argument after the buffer is the flags; the length is part of the buffer
// only: clang
// mistake 21, warning: `peer.recv(buf, 100)`

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    char buf[100];
    co_await peer.recv(buf);
#else
    char buf[100];
    co_await peer.recv(buf, 100);
#endif
    co_return;
}
#endif

#if COIL_CASE == 14 // length_as_flags_of_a_call
// expect: the argument after the buffer is the flags; the length is part of the buffer
// only: clang

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    char buf[1024];
    co_await coil::io::recv(fd, buf);
#else
    char buf[1024];
    co_await coil::io::recv(fd, buf, 1024);
#endif
    co_return;
}
#endif
