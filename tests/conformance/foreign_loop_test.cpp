// foreign_loop, which stands on an epoll set, an eventfd and a timer, on every backend.

#include "conformance/support.hpp"

#include <array>
#include <system_error>

#include <sys/epoll.h>

namespace conformance {

namespace {

class ForeignLoops : public Conformance {};
COIL_ON_ALL_BACKENDS(ForeignLoops);

/// Nothing happens for 5 ms.
task<> stays_silent(coil::foreign_loop& loop) {
    bool was_stopped = false;
    try {
        static_cast<void>(co_await coil::timeout(loop.wait(), 5ms));
    } catch (const std::system_error&) {
        was_stopped = true;
    }
    EXPECT_TRUE(was_stopped);
}

task<> expires(coil::foreign_loop& loop) {
    const auto woken = co_await loop.wait();
    EXPECT_TRUE(woken.expired);
}

task<> is_interrupted(coil::foreign_loop& loop) {
    const auto woken = co_await loop.wait();
    EXPECT_TRUE(woken.interrupted);
}

task<> readiness() {
    coil::foreign_loop loop;
    const ends p = co_await piped();
    loop.watch(p.a, EPOLLIN);
    auto writing = coil::spawn([](int fd) -> task<> {
        co_await coil::sleep_for(2ms);
        co_await gives(io::write(fd, "ab"), 2);
    }(p.b));
    for (int i = 0; i < 2; ++i) {
        const auto woken = co_await loop.wait();
        EXPECT_EQ(woken.ready.size(), 1U);
        EXPECT_EQ(woken.ready[0].fd, p.a);
        EXPECT_EQ(woken.ready[0].events, EPOLLIN);
        std::array<char, 1> byte{};
        co_await gives(io::read(p.a, byte), 1);
    }
    co_await std::move(writing);
    loop.watch(p.a, EPOLLIN); // again
    loop.unwatch(p.a);
    loop.unwatch(p.a); // no effect
    co_await gives(io::write(p.b, "c"), 1);
    co_await stays_silent(loop);
    co_await closed(p);
    EXPECT_THROW(loop.watch(p.a, EPOLLIN), std::system_error);
}
TEST_P(ForeignLoops, Readiness) { run(readiness()); }

task<> deadlines() {
    coil::foreign_loop loop;
    const std::int64_t begin = now_ns();
    loop.set_deadline(coil::context_clock::now() + 20ms);
    co_await expires(loop);
    EXPECT_GE(now_ns() - begin, 20'000'000);
    loop.set_deadline({}); // in the past
    co_await expires(loop);
    loop.set_deadline(coil::context_clock::now() + 1h);
    auto changing = coil::spawn([](coil::foreign_loop& l) -> task<> {
        co_await coil::yield(); // the other task waits
        l.set_deadline(coil::context_clock::now() + 3ms);
    }(loop));
    co_await expires(loop);
    co_await std::move(changing);
    EXPECT_LT(now_ns() - begin, 60'000'000'000);
    loop.set_deadline(coil::context_clock::now() + 1ms);
    loop.clear_deadline();
    co_await stays_silent(loop);
}
TEST_P(ForeignLoops, Deadlines) { run(deadlines()); }

task<> interruptions() {
    coil::foreign_loop loop;
    loop.interrupt();
    loop.interrupt();
    co_await is_interrupted(loop);
    auto interrupting = coil::spawn([](coil::foreign_loop& l) -> task<> {
        co_await coil::sleep_for(1ms);
        co_await coil::blocking([&l] { l.interrupt(); }); // on another thread
    }(loop));
    co_await is_interrupted(loop);
    co_await std::move(interrupting);
    co_await stays_silent(loop);
}
TEST_P(ForeignLoops, Interruptions) { run(interruptions()); }

} // namespace

} // namespace conformance
