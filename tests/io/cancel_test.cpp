// Cancellation before, during and after an operation, from this thread and others; and races (G3).

#include "io/support.hpp"
#include "support/backends.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::contains;
using coil_test::door_backend;
using coil_test::listener;
using coil_test::pipe_pair;
using coil_test::socket_pair;
using coil_test::sqe;

namespace {

class Cancel : public ::testing::Test {};

task<int> reads(int fd) {
    char buf[8];
    co_return co_await io::read(fd, buf);
}

TEST_F(Cancel, G3_BeforeItStarts_NothingIsSubmitted) {
    const pipe_pair p;
    p.put("data");
    auto main = [](int fd) -> task<int> {
        join_handle<int> h = coil::spawn(reads(fd));
        h.cancel();
        co_return co_await h;
    };
    EXPECT_EQ(coil::run(main(p.in)), -ECANCELED);
    char buf[8];
    EXPECT_EQ(::read(p.in, buf, sizeof buf), 4); // the data is still there
}

TEST_F(Cancel, G3_DuringTheWait) {
    const pipe_pair p;
    auto main = [](int fd) -> task<int> {
        join_handle<int> h = coil::spawn(reads(fd));
        co_await sleep_for(1ms);
        h.cancel();
        co_return co_await h;
    };
    EXPECT_EQ(coil::run(main(p.in)), -ECANCELED);
}

TEST_F(Cancel, G3_AfterTheCompletionTheResultIsReal) {
    const pipe_pair p;
    p.put("data");
    auto main = [](int fd) -> task<int> {
        join_handle<int> h = coil::spawn(reads(fd));
        while (!h.done()) {
            co_await yield();
        }
        h.cancel();
        co_return co_await h;
    };
    EXPECT_EQ(coil::run(main(p.in)), 4);
}

TEST_F(Cancel, G3_InTheTurnInWhichItWasStarted) {
    // The operation and its cancellation are submitted together.
    const pipe_pair p;
    auto main = [](int fd) -> task<int> {
        join_handle<int> h = coil::spawn(reads(fd));
        co_await yield(); // it runs and waits
        h.cancel();
        co_return co_await h;
    };
    EXPECT_EQ(coil::run(main(p.in)), -ECANCELED);
}

TEST_F(Cancel, G3_OfEveryKindOfWait) {
    const socket_pair s;
    const listener l;
    std::string full(1 << 20, 'x');
    while (::send(s.a, full.data(), full.size(), MSG_DONTWAIT) > 0) {
    }
    auto op = [](int which, const socket_pair& pair, const listener& server,
                 const std::string& data) -> task<int> {
        char c;
        ::iovec v{&c, 1};
        switch (which) {
        case 0:
            co_return co_await io::recv(pair.a, {&c, 1});
        case 1:
            co_return co_await io::read(pair.a, {&c, 1});
        case 2:
            co_return co_await io::readv(pair.a, {&v, 1});
        case 3:
            co_return co_await io::send(pair.a, data);
        case 4:
            co_return co_await io::write(pair.a, data);
        case 5:
            co_return co_await io::accept(server.socket);
        case 6:
            co_return co_await io::poll(pair.a, POLLIN);
        default:
            co_return co_await sleep_for(24h);
        }
    };
    auto main = [](auto f, const socket_pair& pair, const listener& server,
                   const std::string& data) -> task<> {
        for (int which = 0; which < 8; ++which) {
            auto h = coil::spawn(f(which, pair, server, data));
            co_await sleep_for(1ms);
            EXPECT_FALSE(h.done()) << which;
            h.cancel();
            EXPECT_EQ(co_await h, -ECANCELED) << which;
        }
    };
    coil::run(main(op, s, l, full));
}

TEST_F(Cancel, G3_EveryLaterAwaitOfTheTaskReturnsTheSame) {
    const pipe_pair p;
    auto task_of_many = [](int fd) -> task<int> {
        char c;
        EXPECT_EQ((co_await io::read(fd, {&c, 1})), -ECANCELED);
        EXPECT_EQ(co_await io::nop(), -ECANCELED);
        EXPECT_EQ(co_await sleep_for(1h), -ECANCELED);
        EXPECT_TRUE((co_await this_task::stop_token()).stop_requested());
        co_return co_await reads(fd); // the token is inherited by the awaited task
    };
    auto main = [](auto f, int fd) -> task<int> {
        join_handle<int> h = coil::spawn(f(fd));
        co_await sleep_for(1ms);
        h.cancel();
        co_return co_await h;
    };
    EXPECT_EQ(coil::run(main(task_of_many, p.in)), -ECANCELED);
}

TEST_F(Cancel, G3_TheTokenOfAnAwaitedTaskIsItsAwaiters) {
    const pipe_pair p;
    auto nested = [](int fd) -> task<int> { co_return co_await reads(fd); };
    auto main = [](auto f, int fd) -> task<int> {
        join_handle<int> h = coil::spawn(f(fd));
        co_await sleep_for(1ms);
        h.cancel();
        co_return co_await h;
    };
    EXPECT_EQ(coil::run(main(nested, p.in)), -ECANCELED);
}

TEST_F(Cancel, G3_OfOneOfManyOnTheSameDescriptor) {
    const pipe_pair p;
    auto reads_one = [](int fd) -> task<int> {
        char c;
        co_return co_await io::read(fd, {&c, 1});
    };
    auto main = [](auto f, const pipe_pair& pipe) -> task<> {
        std::vector<join_handle<int>> handles;
        for (int i = 0; i < 10; ++i) {
            handles.push_back(coil::spawn(f(pipe.in)));
        }
        co_await sleep_for(1ms);
        handles[4].cancel();
        EXPECT_EQ(co_await handles[4], -ECANCELED);
        pipe.put("123456789");
        for (std::size_t i = 0; i < 10; ++i) {
            if (i != 4) {
                EXPECT_EQ(co_await handles[i], 1);
            }
        }
    };
    coil::run(main(reads_one, p));
}

// ---- forced races: the test backend delivers data before the cancellation

TEST_F(Cancel, G3_DataThatComesBeforeTheRequestIsDelivered) {
    const pipe_pair p;
    auto guard = std::make_shared<door_backend::guard>();
    guard->before_enter = [&](door_backend& k, const std::vector<sqe>& entries, unsigned) {
        if (contains(entries, coil::uring::opcode::async_cancel)) {
            p.put("data");
            k.post_completions();
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto main = [](int fd) -> task<int> {
        join_handle<int> h = coil::spawn(reads(fd));
        co_await sleep_for(1ms);
        h.cancel();
        co_return co_await h;
    };
    EXPECT_EQ(coil_test::run_on(ctx, main(p.in)), 4);
}

TEST_F(Cancel, G4_AnAcceptThatWinsAgainstItsCancelKeepsItsDescriptor) {
    const listener l;
    std::vector<coil_test::descriptor> clients;
    auto guard = std::make_shared<door_backend::guard>();
    guard->before_enter = [&](door_backend& k, const std::vector<sqe>& entries, unsigned) {
        if (contains(entries, coil::uring::opcode::async_cancel)) {
            clients.push_back(l.connect());
            k.post_completions();
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto accepts = [](int fd) -> task<int> { co_return co_await io::accept(fd); };
    auto limited = [](int fd) -> task<int> { co_return co_await timeout(io::accept(fd), 1ms); };
    auto main = [](auto f, auto g, int fd) -> task<> {
        auto h = coil::spawn(f(fd));
        co_await sleep_for(1ms);
        h.cancel();
        const coil_test::descriptor by_token{co_await h};
        EXPECT_GE(by_token, 0);
        const coil_test::descriptor by_time{co_await g(fd)};
        EXPECT_GE(by_time, 0);
    };
    coil_test::run_on(ctx, main(accepts, limited, l.socket));
}

TEST_F(Cancel, G4_AnAcceptThatWinsAgainstItsDestructionIsClosed) {
    const listener l;
    std::vector<coil_test::descriptor> clients;
    auto guard = std::make_shared<door_backend::guard>();
    guard->before_enter = [&](door_backend& k, const std::vector<sqe>& entries, unsigned) {
        if (contains(entries, coil::uring::opcode::async_cancel)) {
            clients.push_back(l.connect());
            k.post_completions();
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto accepts = [](int fd) -> coil_test::manual {
        co_await io::accept(fd);
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f, int fd) -> task<> {
        coil_test::manual victim = f(fd);
        victim.start();
        co_await sleep_for(1ms);
        victim.destroy();
    };
    coil_test::run_on(ctx, main(accepts, l.socket));
    EXPECT_EQ(clients.size(), 1U); // the race was forced
}

TEST_F(Cancel, G4_AnAcceptThatWinsAgainstShutdownIsClosed) {
    const listener l;
    std::vector<coil_test::descriptor> clients;
    auto guard = std::make_shared<door_backend::guard>();
    guard->before_enter = [&](door_backend& k, const std::vector<sqe>& entries, unsigned) {
        if (contains(entries, coil::uring::opcode::async_cancel)) {
            clients.push_back(l.connect());
            k.post_completions();
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto accepts = [](int fd) -> task<> {
        co_await io::accept(fd);
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto stops = [](io_context& c) -> task<> {
        co_await sleep_for(1ms);
        c.stop();
    };
    ctx.co_spawn(accepts(l.socket));
    ctx.co_spawn(stops(ctx));
    ctx.run();
    EXPECT_GE(clients.size(), 1U); // the race was forced
}

// ---- other threads

TEST_F(Cancel, G9_FromAnotherThreadAtAnyMoment) {
    const pipe_pair p;
    int cancelled = 0;
    int received = 0;
    io_context ctx;
    auto alive = []() -> task<> { co_await sleep_for(24h); };
    [[maybe_unused]] auto handle = ctx.spawn(alive());
    ctx.start();
    const int all = coil_test::rounds(1000, 30'000);
    for (int round = 0; round < all; ++round) {
        join_handle<int> h = ctx.spawn(reads(p.in));
        if (round % 4 == 1) {
            std::this_thread::sleep_for(std::chrono::microseconds(round % 100));
        }
        if (round % 2 == 0) {
            p.put("x");
        }
        h.cancel();
        const int n = h.get();
        if (n == -ECANCELED) {
            ++cancelled;
            if (round % 2 == 0) {
                char c;
                ASSERT_EQ(::read(p.in, &c, 1), 1) << "cancelled, yet the data is gone";
            }
        } else {
            ASSERT_EQ(n, 1);
            ASSERT_EQ(round % 2, 0);
            ++received;
        }
    }
    EXPECT_EQ(cancelled + received, all);
    EXPECT_GE(cancelled, all / 2);
    ctx.stop();
    ctx.join();
}

TEST_F(Cancel, G9_ManyThreadsCancelManyTasks) {
    io_context ctx;
    const pipe_pair p;
    constexpr std::size_t count = 300;
    for (int round = 0; round < coil_test::rounds(5, 100); ++round) {
        std::vector<join_handle<int>> handles;
        for (std::size_t i = 0; i < count; ++i) {
            handles.push_back(ctx.spawn(reads(p.in)));
        }
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < 3; ++t) {
            threads.emplace_back([&, t] {
                for (std::size_t i = t; i < count; i += 3) {
                    handles[i].cancel();
                }
            });
        }
        ctx.run();
        for (auto& t : threads) {
            t.join();
        }
        for (auto& h : handles) {
            ASSERT_EQ(h.get(), -ECANCELED);
        }
    }
}

TEST(CancelWorker, G3_ACancelledCallInAnIoWqWorkerGivesECANCELED) {
    // Neither EINTR nor one of the kernel's internal restart codes.
    const coil_test::pipe_pair from;
    const coil_test::pipe_pair to;
    char fifo[] = "/tmp/coil-fifo-XXXXXX";
    ASSERT_NE(::mkdtemp(fifo), nullptr);
    const std::string name = std::string(fifo) + "/fifo";
    ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    auto main = [](int in, int out, const char* path) -> task<> {
        EXPECT_EQ(co_await timeout(io::splice(in, nullptr, out, nullptr, 5, 0), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(io::tee(in, out, 5, 0), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(io::nop() && io::splice(in, nullptr, out, nullptr, 5, 0), 5ms),
                  -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(io::force_async(io::open(path, O_RDONLY)), 5ms), -ETIMEDOUT);
    };
    coil::run(main(from.in, to.out, name.c_str()));
    ::unlink(name.c_str());
    ::rmdir(fifo);
}

} // namespace
