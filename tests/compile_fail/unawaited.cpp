// Results that were not awaited.

#include <coil/coil.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#if COIL_CASE == 1 // unawaited_accepted_socket
// expect: did you forget to co_await? Write co_await f()
// mistake 1: `net::socket peer = ac.accept();`

coil::task<> caller(coil::net::acceptor& ac) {
#if defined(COIL_EXPECT_OK)
    coil::net::socket peer = co_await ac.accept();
#else
    coil::net::socket peer = ac.accept();
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // unawaited_accepted_in_a_loop
// expect: did you forget to co_await? Write co_await f()
// mistake 1: `while (auto peer = ac.accept())`

coil::task<> caller(coil::net::acceptor& ac) {
#if defined(COIL_EXPECT_OK)
    while (auto peer = co_await ac.accept()) {
    }
#else
    while (auto peer = ac.accept()) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // unawaited_read_file
// expect: did you forget to co_await? Write co_await f()

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const std::string text = co_await coil::fs::read_file("name");
#else
    const std::string text = coil::fs::read_file("name");
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // unawaited_sum_of_tasks
// expect: did you forget to co_await? Write co_await f()

coil::task<int> part();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const int sum = co_await part() + co_await part();
    (void)sum;
#else
    const int sum = part() + part();
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // unawaited_send_all
// expect: did you forget to co_await? Write co_await f()

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    const int n = co_await peer.send_all("text");
    (void)n;
#else
    const int n = peer.send_all("text");
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // unawaited_received_element
// expect: did you forget to co_await? Only that gives the result
// mistake 2: `std::optional<int> x = in.recv();`

coil::task<> caller(coil::channel<int>& in) {
#if defined(COIL_EXPECT_OK)
    const std::optional<int> one = co_await in.recv();
    (void)one;
#else
    const std::optional<int> one = in.recv();
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // unawaited_received_in_a_loop
// expect: did you forget to co_await? Only that gives the result
// mistake 2: `while (auto x = in.recv())`

coil::task<> caller(coil::channel<int>& in) {
#if defined(COIL_EXPECT_OK)
    while (auto one = co_await in.recv()) {
    }
#else
    while (auto one = in.recv()) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // unawaited_sent_element
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller(coil::channel<int>& out) {
#if defined(COIL_EXPECT_OK)
    co_await out.send(1);
#else
    if (out.send(1)) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // unawaited_next_of_a_generator
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller(coil::async_generator<int>& all) {
#if defined(COIL_EXPECT_OK)
    while (auto one = co_await all.next()) {
    }
#else
    while (auto one = all.next()) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // unawaited_sleep
// expect: did you forget to co_await? Only that gives the result
// mistake 2: `int r = sleep_for(1s);`

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const int r = co_await coil::sleep_for(std::chrono::seconds(1));
    (void)r;
#else
    const int r = coil::sleep_for(std::chrono::seconds(1));
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // unawaited_limited_task
// expect: did you forget to co_await? Only that gives the result

coil::task<int> work();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const int n = co_await timeout(work(), std::chrono::seconds(1));
    (void)n;
#else
    const int n = timeout(work(), std::chrono::seconds(1));
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // unawaited_blocking
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const int n = co_await coil::blocking([] { return 1; });
    (void)n;
#else
    const int n = coil::blocking([] { return 1; });
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // unawaited_accepted_number
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller(coil::io::accept_stream& connections) {
#if defined(COIL_EXPECT_OK)
    const int fd = co_await connections.next();
    (void)fd;
#else
    const int fd = connections.next();
#endif
    co_return;
}
#endif

#if COIL_CASE == 14 // unawaited_task_as_optional
// expect: did you forget to co_await? Write co_await f() to get the result of a task
// mistake 1: `std::optional<int> n = f();`

coil::task<int> answer();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const std::optional<int> n = co_await answer();
#else
    const std::optional<int> n = answer();
#endif
    static_cast<void>(n);
    co_return;
}
#endif

#if COIL_CASE == 15 // unused_limited_task
// expect: unused variable
// mistake 1, warning: `auto t = timeout(f(), 1s);` that is not used

coil::task<> f();

coil::task<> caller(coil::io_context& ctx) {
    static_cast<void>(ctx);
    auto work = coil::timeout(f(), std::chrono::seconds(1));
#if defined(COIL_EXPECT_OK)
    co_await std::move(work);
#endif
    co_return;
}
#endif

#if COIL_CASE == 16 // unused_shielded_task
// expect: unused variable

coil::task<> f();

coil::task<> caller(coil::io_context& ctx) {
    static_cast<void>(ctx);
    auto work = coil::shield(f());
#if defined(COIL_EXPECT_OK)
    co_await std::move(work);
#endif
    co_return;
}
#endif

#if COIL_CASE == 17 // unused_joined_task
// expect: unused variable

coil::task<> f();

coil::task<> caller(coil::io_context& ctx) {
    static_cast<void>(ctx);
    auto work = coil::when_all(f(), f());
#if defined(COIL_EXPECT_OK)
    co_await std::move(work);
#endif
    co_return;
}
#endif

#if COIL_CASE == 18 // unused_raced_task
// expect: unused variable

coil::task<> f();

coil::task<> caller(coil::io_context& ctx) {
    static_cast<void>(ctx);
    auto work = coil::when_any(f(), f());
#if defined(COIL_EXPECT_OK)
    co_await std::move(work);
#endif
    co_return;
}
#endif

#if COIL_CASE == 19 // unused_sent_away_task
// expect: unused variable

coil::task<> f();

coil::task<> caller(coil::io_context& ctx) {
    static_cast<void>(ctx);
    auto work = coil::on(ctx, f());
#if defined(COIL_EXPECT_OK)
    co_await std::move(work);
#endif
    co_return;
}
#endif

#if COIL_CASE == 20 // unawaited_task_in_make_unique
// expect: did you forget to co_await? Write co_await f()
// mistake 1: `auto p = std::make_unique<int>(f());`

coil::task<int> f();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto p = std::make_unique<int>(co_await f());
#else
    auto p = std::make_unique<int>(f());
#endif
    co_return;
}
#endif

#if COIL_CASE == 21 // unawaited_operation_in_make_unique
// expect: did you forget to co_await? Write int n = co_await io::read(fd, buf)

coil::task<> caller(int fd, std::string& text) {
#if defined(COIL_EXPECT_OK)
    auto p = std::make_unique<int>(co_await coil::io::read(fd, text));
#else
    auto p = std::make_unique<int>(coil::io::read(fd, text));
#endif
    co_return;
}
#endif

#if COIL_CASE == 22 // unawaited_task_assigned_to_an_optional
// expect: did you forget to co_await? Write co_await f()

coil::task<int> f();

coil::task<> caller() {
    std::optional<int> n;
#if defined(COIL_EXPECT_OK)
    n = co_await f();
#else
    n = f();
#endif
    co_return;
}
#endif

#if COIL_CASE == 23 // unawaited_operation_assigned_to_an_optional
// expect: did you forget to co_await? Write int n = co_await io::read(fd, buf)
// mistake 2: `std::optional<int> n; n = io::read(fd, buf);`

coil::task<> caller(int fd, std::string& text) {
    std::optional<int> n;
#if defined(COIL_EXPECT_OK)
    n = co_await coil::io::read(fd, text);
#else
    n = coil::io::read(fd, text);
#endif
    co_return;
}
#endif

#if COIL_CASE == 24 // unawaited_operation_in_an_optional
// expect: did you forget to co_await? Write int n = co_await io::read(fd, buf)

coil::task<> caller(int fd, std::string& text) {
#if defined(COIL_EXPECT_OK)
    const std::optional<int> n = co_await coil::io::read(fd, text);
    (void)n;
#else
    const std::optional<int> n = coil::io::read(fd, text);
#endif
    co_return;
}
#endif
