// epoll_ctl, epoll_wait: effects and results are those of the system calls, with and without the
// ring's own operations.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <array>
#include <chrono>
#include <memory>

#include <sys/epoll.h>
#include <sys/syscall.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::door_backend;
using coil_test::manual;
using coil_test::pipe_pair;
using io_test::outcome;

namespace {

/// Runs with a kernel that has the operations, and with an older one.
class Epoll : public ::testing::Test, public ::testing::WithParamInterface<bool> {
protected:
    static std::shared_ptr<door_backend::guard> backend() {
        auto guard = std::make_shared<door_backend::guard>();
        if (!GetParam()) {
            guard->hidden = {uring::opcode::epoll_ctl, uring::opcode::epoll_wait};
        }
        return guard;
    }
    template <class Operation>
    int result_of(Operation op) {
        return coil_test::run_on(context_, io_test::await_one(std::move(op)));
    }
    void watch(int fd, std::uint64_t data, std::uint32_t mask = EPOLLIN) {
        ::epoll_event event{};
        event.events = mask;
        event.data.u64 = data;
        ASSERT_EQ(::epoll_ctl(set_, EPOLL_CTL_ADD, fd, &event), 0);
    }

    descriptor set_{::epoll_create1(EPOLL_CLOEXEC)};
    io_context context_{
        coil_test::with([](auto& o) { o.make_backend = door_backend::factory(backend()); })};
};

std::uint64_t data_of(const ::epoll_event& e) { return e.data.u64; } // the struct is packed

TEST_P(Epoll, CtlAddsModifiesAndDeletes) {
    const pipe_pair p;
    ::epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = 1;
    EXPECT_EQ(result_of(io::epoll_ctl(set_, EPOLL_CTL_MOD, p.in, &event)), -ENOENT);
    EXPECT_EQ(result_of(io::epoll_ctl(set_, EPOLL_CTL_ADD, p.in, &event)), 0);
    EXPECT_EQ(result_of(io::epoll_ctl(set_, EPOLL_CTL_ADD, p.in, &event)), -EEXIST);
    event.data.u64 = 2;
    EXPECT_EQ(result_of(io::epoll_ctl(set_, EPOLL_CTL_MOD, p.in, &event)), 0);
    p.put("x");
    ::epoll_event got{};
    EXPECT_EQ(::epoll_wait(set_, &got, 1, 0), 1);
    EXPECT_EQ(data_of(got), 2U);
    EXPECT_EQ(result_of(io::epoll_ctl(set_, EPOLL_CTL_DEL, p.in, nullptr)), 0);
    EXPECT_EQ(::epoll_wait(set_, &got, 1, 0), 0);
    // Failures.
    for (const auto& [epfd, op, fd] :
         {std::tuple{-1, EPOLL_CTL_ADD, int{p.in}}, std::tuple{int{set_}, EPOLL_CTL_ADD, -1},
          std::tuple{int{p.in}, EPOLL_CTL_ADD, int{p.out}},
          std::tuple{int{set_}, EPOLL_CTL_ADD, int{set_}}, std::tuple{int{set_}, 99, int{p.in}}}) {
        EXPECT_EQ(result_of(io::epoll_ctl(epfd, op, fd, &event)),
                  outcome(::epoll_ctl(epfd, op, fd, &event)))
            << epfd << ' ' << op << ' ' << fd;
    }
}

TEST_P(Epoll, WaitTakesPendingEvents) {
    const pipe_pair a;
    const pipe_pair b;
    watch(a.in, 1);
    watch(b.in, 2);
    a.put("x");
    b.put("x");
    std::array<::epoll_event, 4> events{};
    EXPECT_EQ(result_of(io::epoll_wait(set_, events)), 2);
    EXPECT_EQ(data_of(events[0]) + data_of(events[1]), 3U);
    EXPECT_EQ(result_of(io::epoll_wait(set_, {events.data(), 1})), 1); // level-triggered: again
    EXPECT_EQ(result_of(io::epoll_wait(set_, events, 1000)), 2);
    EXPECT_EQ(result_of(io::epoll_wait(set_, events, 0)), 2);
    EXPECT_EQ(result_of(io::epoll_wait(set_, events, -1)), 2);
}

TEST_P(Epoll, AnEdgeIsReportedOnce) {
    const pipe_pair p;
    watch(p.in, 1, EPOLLIN | EPOLLET);
    p.put("x");
    std::array<::epoll_event, 4> events{};
    EXPECT_EQ(result_of(io::epoll_wait(set_, events)), 1);
    EXPECT_EQ(result_of(io::epoll_wait(set_, events, 0)), 0);
}

TEST_P(Epoll, WaitWaitsForAnEvent) {
    const pipe_pair p;
    watch(p.in, 5);
    auto waits = [](int set, std::span<::epoll_event> into, int limit) -> task<int> {
        if (limit == 0) {
            co_return co_await io::epoll_wait(set, into);
        }
        co_return co_await io::epoll_wait(set, into, limit);
    };
    auto main = [](auto f, int set, const pipe_pair& pipe) -> task<> {
        for (const int limit : {0, -1, 60'000}) {
            std::array<::epoll_event, 4> events{};
            auto h = coil::spawn(f(set, events, limit));
            co_await sleep_for(2ms);
            EXPECT_FALSE(h.done()) << limit;
            pipe.put("x");
            EXPECT_EQ(co_await h, 1) << limit;
            EXPECT_EQ(data_of(events[0]), 5U) << limit;
            char c = 0;
            EXPECT_EQ(co_await io::read(pipe.in, {&c, 1}), 1);
        }
    };
    coil_test::run_on(context_, main(waits, set_, p));
}

TEST_P(Epoll, AnExpiredLimitOfTheCallReturnsZero) {
    const pipe_pair p;
    watch(p.in, 1);
    std::array<::epoll_event, 2> events{};
    EXPECT_EQ(result_of(io::epoll_wait(set_, events, 0)), 0);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(result_of(io::epoll_wait(set_, events, 20)), 0);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
    EXPECT_EQ(result_of(timeout(io::epoll_wait(set_, events), 1ms)), -ETIMEDOUT);
    EXPECT_EQ(result_of(timeout(io::epoll_wait(set_, events, 60'000), 1ms)), -ETIMEDOUT);
    EXPECT_EQ(result_of(timeout(io::epoll_wait(set_, events, 1), 60s)), 0);
}

TEST_P(Epoll, WaitFailsAsTheSystemCallDoes) {
    const pipe_pair no_set;
    std::array<::epoll_event, 2> events{};
    for (const int fd : {-1, int{no_set.in}, int{no_set.out}, int{set_}}) {
        for (const std::size_t room : {0U, 2U}) {
            if (fd == set_ && room > 0) {
                continue; // would wait
            }
            const int expected =
                outcome(::epoll_wait(fd, events.data(), static_cast<int>(room), 0));
            EXPECT_LT(expected, 0);
            EXPECT_EQ(result_of(io::epoll_wait(fd, {events.data(), room})), expected)
                << fd << ' ' << room;
            EXPECT_EQ(result_of(io::epoll_wait(fd, {events.data(), room}, 1000)), expected)
                << fd << ' ' << room;
        }
    }
    watch(no_set.in, 1);
    no_set.put("x");
    ::epoll_event* const nowhere = nullptr;
    EXPECT_EQ(
        result_of(io::epoll_wait(set_, {nowhere, 1})),
        outcome(::syscall(SYS_epoll_pwait, static_cast<int>(set_), nowhere, 1, 0, nullptr, 0)));
}

TEST_P(Epoll, InAChain) {
    const pipe_pair p;
    const pipe_pair watched;
    watch(watched.in, 1);
    auto main = [](int set, const pipe_pair& pipe, const pipe_pair& other) -> task<> {
        std::array<::epoll_event, 2> events{};
        EXPECT_EQ(co_await (io::write(other.out, "x") && io::epoll_wait(set, events)), 1);
        EXPECT_EQ(co_await (io::write(other.out, "x") && io::epoll_wait(set, events, 1000)), 1);
        EXPECT_EQ(co_await (io::epoll_wait(set, events) && io::write(pipe.out, "ab")), 2);
        EXPECT_EQ(co_await (io::epoll_wait(set, events, 1000) && io::write(pipe.out, "abc")), 3);
        EXPECT_EQ(co_await (timeout(io::epoll_wait(set, events), 1s) && io::write(pipe.out, "a")),
                  1);
        EXPECT_EQ(co_await (io::epoll_wait(-1, events) && io::write(pipe.out, "no")), -ECANCELED);
    };
    coil_test::run_on(context_, main(set_, p, watched));
    char buf[16];
    EXPECT_EQ(::read(p.in, buf, sizeof buf), 6);
}

TEST_P(Epoll, G3_CancelledAndG2_Destroyed_NoEventIsTaken) {
    const pipe_pair p;
    watch(p.in, 1, EPOLLIN | EPOLLONESHOT);
    auto waits = [](int set, std::span<::epoll_event> into, bool limited) -> task<int> {
        if (limited) {
            co_return co_await io::epoll_wait(set, into, 60'000);
        }
        co_return co_await io::epoll_wait(set, into);
    };
    auto dies = [](int set, std::span<::epoll_event> into, bool limited) -> manual {
        if (limited) {
            co_await io::epoll_wait(set, into, 60'000);
        } else {
            co_await io::epoll_wait(set, into);
        }
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f, auto g, int set) -> task<> {
        std::array<::epoll_event, 1> events{};
        for (const bool limited : {false, true}) {
            auto h = coil::spawn(f(set, events, limited));
            co_await sleep_for(1ms);
            h.cancel();
            EXPECT_EQ(co_await h, -ECANCELED) << limited;
            manual victim = g(set, events, limited);
            victim.start();
            co_await io::nop();
            victim.destroy();
        }
    };
    coil_test::run_on(context_, main(waits, dies, set_));
    p.put("x");
    ::epoll_event event{};
    EXPECT_EQ(::epoll_wait(set_, &event, 1, 0), 1); // the one-shot event was not consumed
}

INSTANTIATE_TEST_SUITE_P(Backends, Epoll, ::testing::Bool(), [](const auto& has_operations) {
    return has_operations.param ? "WithOperations" : "WithoutOperations";
});

} // namespace
