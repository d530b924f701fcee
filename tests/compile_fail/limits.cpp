// Limits.

#include <coil/coil.hpp>

#include <chrono>

#if COIL_CASE == 1 // forgotten_await_limited_next
// expect: did you forget to co_await?

coil::task<> caller(coil::io::recv_stream& incoming) {
#if defined(COIL_EXPECT_OK)
    const auto chunk = co_await timeout(incoming.next(), std::chrono::seconds(1));
#else
    timeout(incoming.next(), std::chrono::seconds(1));
    co_return;
#endif
}
#endif

#if COIL_CASE == 2 // forgotten_await_limited_task
// expect: did you forget to co_await?

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(work(), 1s);
#else
    coil::timeout(work(), 1s);
    co_return;
#endif
}
#endif

#if COIL_CASE == 3 // forgotten_timeout
// expect: did you forget to co_await?

coil::task<> user(int fd) {
    using namespace std::chrono_literals;
#ifdef COIL_EXPECT_OK
    co_await coil::timeout(coil::io::close(fd), 1s);
#else
    coil::timeout(coil::io::close(fd), 1s);
    co_return;
#endif
}
#endif

#if COIL_CASE == 4 // limit_twice
// expect: this operation is limited already

coil::task<> caller(int fd) {
    using namespace std::chrono_literals;
    char buf[16];
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(coil::io::read(fd, buf), 1s);
#else
    co_await coil::timeout(coil::timeout(coil::io::read(fd, buf), 1s), 2s);
#endif
}
#endif

#if COIL_CASE == 5 // limited_chain_in_chain
// expect: inside a chain, limit single operations

coil::task<int> user() {
    using namespace std::chrono_literals;
    using coil::timeout;
    using coil::io::nop;
#ifdef COIL_EXPECT_OK
    co_return co_await (timeout(nop(), 1s) && timeout(nop(), 1s) && nop());
#else
    co_return co_await (timeout(nop() && nop(), 1s) && nop());
#endif
}
#endif

#if COIL_CASE == 6 // limited_eager
// expect: this operation has already started: limit it before that, eager(timeout(op, d))

coil::task<> caller(int fd) {
    using namespace std::chrono_literals;
    char buf[16];
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(coil::timeout(coil::io::read(fd, buf), 1s));
    co_await pending;
#else
    auto pending = coil::eager(coil::io::read(fd, buf));
    co_await coil::timeout(pending, 1s);
#endif
}
#endif

#if COIL_CASE == 7 // lvalue_timeout
// expect: an operation is awaited once: limit a temporary, or std::move() the operation

coil::task<int> user() {
    using namespace std::chrono_literals;
    auto op = coil::io::nop();
#ifdef COIL_EXPECT_OK
    co_return co_await coil::timeout(std::move(op), 1s);
#else
    co_return co_await coil::timeout(op, 1s);
#endif
}
#endif

#if COIL_CASE == 8 // named_limited_task
// expect: timeout(...) is awaited once: write co_await std::move(x), or await it directly

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    auto limited = coil::timeout(work(), 1s);
    co_await std::move(limited);
#else
    auto limited = coil::timeout(work(), 1s);
    co_await limited;
#endif
}
#endif

#if COIL_CASE == 9 // named_task_limited
// expect: a task is awaited once

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    auto t = work();
    co_await coil::timeout(std::move(t), 1s);
#else
    auto t = work();
    co_await coil::timeout(t, 1s);
#endif
}
#endif

#if COIL_CASE == 10 // timeout_at_of_span
// expect: this is a duration, not a time point: write timeout(work, duration)

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(work(), 1s);
#else
    co_await coil::timeout_at(work(), 1s);
#endif
}
#endif

#if COIL_CASE == 11 // timeout_of_number
// expect: pass the limit as a duration with a unit: timeout(op, 3s)

coil::task<> waits() {
#ifdef COIL_EXPECT_OK
    co_await coil::timeout(coil::io::nop(), std::chrono::seconds(3));
#else
    co_await coil::timeout(coil::io::nop(), 3);
#endif
}
#endif

#if COIL_CASE == 12 // timeout_of_time
// expect: this is a time point, not a duration: write timeout_at(work, time)

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout_at(work(), std::chrono::steady_clock::now());
#else
    co_await coil::timeout(work(), std::chrono::steady_clock::now());
#endif
}
#endif
