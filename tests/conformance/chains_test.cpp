// Timeouts, cancellation and chains on every backend.

#include "conformance/support.hpp"

#include <algorithm>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include <poll.h>

namespace conformance {

namespace {

class Chains : public Conformance {};
COIL_ON_ALL_BACKENDS(Chains);

task<> time_passes() {
    const std::int64_t before = now_ns();
    co_await gives(coil::sleep_for(5ms), 0);
    EXPECT_GE(now_ns() - before, 5'000'000);
    const ends p = co_await piped();
    char buf[4];
    const std::int64_t begin = now_ns();
    co_await gives(coil::timeout(io::read(p.a, buf), 3ms), -ETIMEDOUT);
    EXPECT_GE(now_ns() - begin, 3'000'000);
    co_await gives(coil::timeout(io::read(p.a, buf), 0ms), -ETIMEDOUT);
    co_await gives(coil::timeout(io::nop(), 1h), 0);
    co_await gives(io::write(p.b, "abc"), 3);
    co_await gives(coil::timeout(io::read(p.a, buf), 1h), 3);
    co_await closed(p);
}
TEST_P(Chains, TimePasses) { run(time_passes()); }

task<> cancels() {
    const ends p = co_await piped();
    const ends s = co_await connected();
    char buf[4];
    auto reading = coil::eager(io::read(p.a, buf));
    co_await gives(io::cancel(reading), 0);
    int r = co_await reading;
    EXPECT_EQ(r, -ECANCELED);
    co_await gives(io::cancel(reading), -ENOENT);

    char others[4];
    auto first = coil::eager(io::recv(s.a, buf));
    auto second = coil::eager(io::poll(s.a, POLLIN));
    auto other = coil::eager(io::recv(s.b, others));
    co_await gives(io::cancel(io::descriptor(s.a)), 2, "both on that descriptor");
    r = co_await first;
    EXPECT_EQ(r, -ECANCELED);
    r = co_await second;
    EXPECT_EQ(r, -ECANCELED);
    co_await gives(io::send(s.a, "x"), 1);
    r = co_await other;
    EXPECT_EQ(r, 1); // not the other end's
    co_await gives(io::cancel(io::descriptor(s.a)), 0, "nothing is in flight");

    {
        const auto dropped = coil::eager(io::recv(s.b, buf));
    }
    co_await gives(io::send(s.a, "y"), 1);
    co_await gives(io::recv(s.b, buf), 1, "a dropped receive takes nothing");
    co_await closed(p);
    co_await closed(s);
}
TEST_P(Chains, G3_Cancels) { run(cancels()); }

task<int> reads(int fd) {
    char buf[4];
    co_return co_await io::read(fd, buf);
}

task<> stops() {
    const ends p = co_await piped();
    auto reader = coil::spawn(reads(p.a));
    co_await coil::yield();
    reader.cancel();
    const int r = co_await reader;
    EXPECT_EQ(r, -ECANCELED);
    co_await gives(io::write(p.b, "x"), 1);
    co_await gives(reads(p.a), 1, "nothing was lost");
    co_await closed(p);
}
TEST_P(Chains, G3_StopRequests) { run(stops()); }

task<> links(std::string directory) {
    const int fd = co_await io::open(directory + "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const ends p = co_await piped();
    char buf[16] = {};
    co_await gives(io::write(fd, "abcdef", 0) && io::read(fd, {buf, 3}, 1), 3);
    EXPECT_EQ(text(buf, 3), "bcd");
    co_await gives(io::write(p.b, "123") && io::read(p.a, {buf, 3}) && io::write(fd, buf, 0), 16);
    EXPECT_EQ(text(buf, 3), "123");
    // A failure ends the chain, and so does a short transfer.
    co_await gives(io::read(-1, buf) && io::write(p.b, "x"), -ECANCELED);
    co_await gives(io::read(fd, {buf, 16}, 10) && io::write(p.b, "x"), -ECANCELED);
    co_await gives(io::nop() && io::read(-1, buf) && io::nop(), -ECANCELED);
    co_await gives(io::nop() && io::read(-1, buf), -EBADF);
    co_await gives(coil::timeout(io::poll(p.a, POLLIN), 1ms), -ETIMEDOUT, "nothing was written");
    // A hard link continues.
    co_await gives(coil::hard_link(io::read(-1, buf), io::write(p.b, "y")), 1);
    co_await gives(io::read(p.a, buf), 1);
    co_await gives(io::close(fd), 0);
    co_await closed(p);
}
TEST_P(Chains, Links) { run(links(directory())); }

/// An operation that every ring rejects at submission: no operation of its chain starts.
coil::operation refused(int fd) {
    coil::uring::sqe request = coil::uring::prep::fsync(fd);
    request.fsync_flags = 0xff00;
    return coil::detail::make_operation(request);
}

task<> refusals_in_chains(std::string directory) {
    const int fd = co_await io::open(directory + "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char buf[4];
    co_await gives(refused(fd), -EINVAL);
    co_await gives(io::write(fd, "no", 0) && refused(fd), -ECANCELED, "the write, too");
    co_await gives(refused(fd) && io::write(fd, "no", 0), -ECANCELED);
    co_await gives(io::nop() && refused(fd) && io::write(fd, "no", 0), -ECANCELED);
    co_await gives(coil::hard_link(refused(fd), io::write(fd, "no", 0)), -ECANCELED);
    co_await gives(io::read(fd, buf, 0), 0, "nothing was written");
    co_await gives(io::close(fd), 0);
}
TEST_P(Chains, ARefusedOperationEndsItsWholeChain) { run(refusals_in_chains(directory())); }

task<> links_that_wait() {
    const ends p = co_await piped();
    const ends q = co_await piped();
    char buf[16] = {};
    auto chain = coil::eager(io::read(p.a, {buf, 2}) && io::write(q.b, "after"));
    co_await coil::yield();
    co_await gives(coil::timeout(io::poll(q.a, POLLIN), 1ms), -ETIMEDOUT,
                   "the operation before it has not completed");
    co_await gives(io::write(p.b, "ab"), 2);
    int r = co_await chain;
    EXPECT_EQ(r, 5);
    co_await gives(io::read(q.a, buf), 5);

    auto cancelled = coil::eager(io::read(p.a, buf) && io::write(q.b, "never"));
    co_await coil::yield();
    co_await gives(io::cancel(cancelled), 0);
    r = co_await cancelled;
    EXPECT_EQ(r, -ECANCELED);
    co_await gives(coil::timeout(io::poll(q.a, POLLIN), 1ms), -ETIMEDOUT);

    // An expired link timeout also ends the rest of the chain.
    co_await gives(coil::timeout(io::read(p.a, buf), 2ms) && io::write(q.b, "never"), -ETIMEDOUT);
    co_await gives(coil::timeout(io::poll(q.a, POLLIN), 1ms), -ETIMEDOUT);
    co_await gives(io::write(p.b, "abc"), 3);
    co_await gives(coil::timeout(io::read(p.a, {buf, 3}), 1h) && io::write(q.b, "now"), 3);
    co_await gives(coil::timeout(io::nop() && io::read(p.a, buf), 2ms), -ETIMEDOUT);
    co_await closed(p);
    co_await closed(q);
}
TEST_P(Chains, LinksThatWait) { run(links_that_wait()); }

task<> drains() {
    const ends p = co_await piped();
    char buf[4];
    auto first = coil::eager(io::read(p.a, buf));
    auto barrier = coil::eager(io::drain(io::nop()));
    co_await coil::yield();
    const int w = ::coil::detail::perform(coil::uring::prep::write(p.b, "x", 1, ~0ULL));
    EXPECT_EQ(w, 1);
    int r = co_await barrier;
    EXPECT_EQ(r, 0);
    r = co_await first;
    EXPECT_EQ(r, 1);
    co_await closed(p);
}
TEST_P(Chains, Drain) { run(drains()); }

task<> many(int count) {
    const ends p = co_await piped();
    std::vector<char> buffers(static_cast<std::size_t>(count), 'k');
    {
        std::list<coil::eager_operation<coil::operation::element_type>> waiting;
        for (int i = 0; i < count; ++i) {
            waiting.emplace_back(io::read(p.a, {&buffers[static_cast<std::size_t>(i)], 1}));
        }
        co_await coil::yield();
        co_await gives(io::nop(), 0);
    }
    buffers.assign(buffers.size(), 'k');
    char buf[4];
    co_await gives(io::write(p.b, "x"), 1);
    EXPECT_EQ(std::ranges::count(buffers, 'k'), count); // the readers have ended
    co_await gives(io::read(p.a, buf), 1);
    co_await closed(p);
}
TEST_P(Chains, G2_ManyAreDropped) { run(many(500)); }

task<> futexes() {
    alignas(4) std::uint32_t word = 1;
    using namespace coil::uring;
    co_await gives(io::futex_wait(&word, 2), -EAGAIN);
    co_await gives(io::futex_wake(&word, 1), 0);
    auto waiting = coil::eager(io::futex_wait(&word, 1));
    co_await coil::yield();
    int woken = 0;
    while (woken == 0) { // the waiter may not have started yet
        woken = co_await io::futex_wake(&word, 1);
        if (woken == 0) {
            co_await coil::sleep_for(1ms);
        }
    }
    EXPECT_EQ(woken, 1);
    const int r = co_await waiting;
    EXPECT_EQ(r, 0);
    co_await gives(coil::timeout(io::futex_wait(&word, 1), 2ms), -ETIMEDOUT);
    co_await gives(coil::timeout(io::futex_wait(&word, 1), 2ms) && io::nop(), -ETIMEDOUT);
    co_await gives(io::nop() && coil::timeout(io::futex_wait(&word, 1), 2ms), -ETIMEDOUT);
    co_await gives(io::futex_wake(&word, 1), 0, "no waiter is left");
}
TEST_P(Chains, Futexes) { run(futexes()); }

} // namespace

} // namespace conformance
