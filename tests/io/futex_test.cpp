// futex_wait, futex_wake, futex_waitv: effects and results are those of futex(2).

#include "io/support.hpp"
#include "support/backends.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::contains;
using coil_test::door_backend;
using coil_test::manual;
using coil_test::sqe;
using io_test::outcome;
using uring::futex_flag::private_;
using uring::futex_flag::size_u32;

namespace {

constexpr long wait_call = 455; // SYS_futex_wait
constexpr long wake_call = 454; // SYS_futex_wake

using word = std::atomic<std::uint32_t>;

int wake_by_system_call(const word& w, int count = 1) {
    return outcome(::syscall(SYS_futex, &w, FUTEX_WAKE, count, nullptr, nullptr, 0));
}

class Futex : public io_test::Calls {
protected:
    void SetUp() override { need(uring::opcode::futex_wait, "futexes"); }
};

TEST_F(Futex, WaitReturnsWhenAnotherThreadWakesBySystemCall) {
    word w{1};
    std::thread waker([&] {
        while (wake_by_system_call(w) == 0) {
            std::this_thread::sleep_for(1ms);
        }
    });
    EXPECT_EQ(result_of(io::futex_wait(&w, 1)), 0);
    waker.join();
}

TEST_F(Futex, WakeReachesAThreadThatWaitsBySystemCall) {
    word w{1};
    std::atomic<pid_t> id{0};
    std::thread waiter([&] {
        id = ::gettid();
        EXPECT_EQ(::syscall(SYS_futex, &w, FUTEX_WAIT, 1, nullptr, nullptr, 0), 0);
    });
    while (id == 0) {
        std::this_thread::yield();
    }
    while (result_of(io::futex_wake(&w, 1)) == 0) {
        std::this_thread::sleep_for(1ms);
    }
    waiter.join();
}

TEST_F(Futex, WakeObeysItsCountAndItsMask) {
    auto main = []() -> task<> {
        word w{0};
        auto waits = [](word& on, std::uint64_t mask) -> task<int> {
            co_return co_await io::futex_wait(&on, 0, mask);
        };
        std::vector<join_handle<int>> odd;
        std::vector<join_handle<int>> even;
        for (int i = 0; i < 3; ++i) {
            odd.push_back(coil::spawn(waits(w, 1)));
            even.push_back(coil::spawn(waits(w, 2)));
        }
        co_await sleep_for(1ms);
        EXPECT_EQ(co_await io::futex_wake(&w, 0), 0);
        EXPECT_EQ(co_await io::futex_wake(&w, 2, 1), 2);
        EXPECT_EQ(co_await io::futex_wake(&w, 100, 4), 0);
        EXPECT_EQ(co_await io::futex_wake(&w, 100, 1), 1);
        EXPECT_EQ(co_await io::futex_wake(&w, 100), 3);
        for (auto* const handles : {&odd, &even}) {
            for (auto& h : *handles) {
                EXPECT_EQ(co_await h, 0);
            }
        }
    };
    coil::run(main());
}

TEST_F(Futex, BadArgumentsFailAsTheSystemCallsDo) {
    std::array<std::uint32_t, 2> words{1, 1};
    const auto* const good = words.data();
    const auto* const odd = reinterpret_cast<const char*>(good) + 1;
    struct arguments {
        const void* at;
        std::uint64_t value;
        std::uint64_t mask;
        std::uint32_t flags;
    };
    const ::timespec past{};
    errno = 0;
    if (::syscall(wait_call, good, 2UL, 1UL, size_u32, &past, CLOCK_MONOTONIC) < 0 &&
        errno == ENOSYS) {
        GTEST_SKIP() << "this kernel has no futex_wait(2) system call to compare with";
    }
    for (const auto& a :
         {arguments{good, 2, 1, size_u32}, arguments{good, 2, 0, size_u32},
          arguments{odd, 2, 1, size_u32}, arguments{nullptr, 2, 1, size_u32},
          arguments{good, 2, 1, 0}, arguments{good, 2, 1, 0x1000},
          arguments{good, 1ULL << 40, 1, size_u32}, arguments{good, 2, 1ULL << 40, size_u32},
          arguments{good, 2, 1, size_u32 | private_}}) {
        EXPECT_EQ(
            result_of(io::futex_wait(a.at, a.value, a.mask, a.flags)),
            outcome(::syscall(wait_call, a.at, a.value, a.mask, a.flags, &past, CLOCK_MONOTONIC)))
            << a.at << ' ' << a.value << ' ' << a.mask << ' ' << a.flags;
        EXPECT_EQ(result_of(io::futex_wake(a.at, 1, a.mask, a.flags)),
                  outcome(::syscall(wake_call, a.at, a.mask, 1, a.flags)))
            << a.at << ' ' << a.mask << ' ' << a.flags;
    }
}

uring::futex_waiter waiter_on(const word& w, std::uint64_t value) {
    return {value, reinterpret_cast<std::uintptr_t>(&w), size_u32, 0};
}

TEST_F(Futex, WaitvReportsWhichWordWokeIt) {
    std::array<word, 3> words{};
    const std::array<uring::futex_waiter, 3> on{waiter_on(words[0], 0), waiter_on(words[1], 0),
                                                waiter_on(words[2], 0)};
    for (int which = 0; which < 3; ++which) {
        std::thread waker([&] {
            while (wake_by_system_call(words.at(static_cast<std::size_t>(which))) == 0) {
                std::this_thread::sleep_for(1ms);
            }
        });
        EXPECT_EQ(result_of(io::futex_waitv(on)), which);
        waker.join();
    }
}

TEST_F(Futex, WaitvFailsAsTheSystemCallDoes) {
    const word w{1};
    std::vector<uring::futex_waiter> on(129, waiter_on(w, 2));
    const auto same = [&](unsigned count) {
        const int expected =
            outcome(::syscall(SYS_futex_waitv, on.data(), count, 0, nullptr, CLOCK_MONOTONIC));
        EXPECT_LT(expected, 0) << count;
        EXPECT_EQ(result_of(io::futex_waitv({on.data(), count})), expected) << count;
        EXPECT_EQ(result_of(io::futex_waitv(
                      reinterpret_cast<const struct ::futex_waitv*>(on.data()), count)),
                  expected)
            << count;
    };
    same(0);
    same(1);
    same(128);
    same(129);
    on[1].flags = 0;
    same(2);
    on[1].flags = size_u32;
    on[1].uaddr = 2;
    same(2);
}

TEST_F(Futex, WaitvAcceptsTheStructOfTheSystemHeader) {
    const word w{1};
    const auto at = reinterpret_cast<std::uintptr_t>(&w);
    struct ::futex_waitv on[2] = {{1, at, FUTEX_32, 0}, {2, at, FUTEX_32, 0}};
    const auto same = [&](unsigned flags) {
        const int expected =
            outcome(::syscall(SYS_futex_waitv, on, 2, flags, nullptr, CLOCK_MONOTONIC));
        EXPECT_EQ(result_of(io::futex_waitv(on, 2, flags)), expected) << flags;
        return expected;
    };
    EXPECT_EQ(same(0), -EAGAIN);
    EXPECT_EQ(same(1), -EINVAL);
    EXPECT_EQ(result_of(io::futex_waitv(on)), -EAGAIN);
    EXPECT_EQ(result_of(io::futex_waitv(std::span(on))), -EAGAIN);
    EXPECT_EQ(result_of(io::futex_waitv(std::vector(std::begin(on), std::end(on)))), -EAGAIN);
    on[1].val = 1;
    for (int i = 0; i < 2; ++i) {
        std::thread waker([&] {
            while (wake_by_system_call(w) == 0) {
                std::this_thread::sleep_for(1ms);
            }
        });
        const int woken = result_of(i == 0 ? io::futex_waitv(on) : io::futex_waitv(on, 2));
        EXPECT_TRUE(woken == 0 || woken == 1) << woken;
        waker.join();
    }
}

// ---- cancellation

TEST_F(Futex, G3_CancelledAndLimitedWaits) {
    auto main = []() -> task<> {
        word w{0};
        const std::array<uring::futex_waiter, 1> on{waiter_on(w, 0)};
        auto waits = [](word& at, const auto& set, bool many) -> task<int> {
            if (many) {
                co_return co_await io::futex_waitv(set);
            }
            co_return co_await io::futex_wait(&at, 0);
        };
        for (const bool many : {false, true}) {
            auto h = coil::spawn(waits(w, on, many));
            co_await sleep_for(1ms);
            h.cancel();
            EXPECT_EQ(co_await h, -ECANCELED);
        }
        auto pending = eager(io::futex_wait(&w, 0));
        co_await io::nop();
        EXPECT_EQ(co_await io::cancel(pending), 0); // the kernel's result is 1
        EXPECT_EQ(co_await pending, -ECANCELED);
        EXPECT_EQ(co_await timeout(io::futex_wait(&w, 0), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(io::futex_waitv(on), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await io::futex_wake(&w, 100), 0); // no waiter is left
    };
    coil::run(main());
}

TEST_F(Futex, G3_AWakeThatComesBeforeTheRequestToCancelIsNotLost) {
    word w{0};
    int woken = 0;
    auto guard = std::make_shared<door_backend::guard>();
    guard->before_enter = [&](door_backend& k, const std::vector<sqe>& entries, unsigned) {
        if (contains(entries, uring::opcode::async_cancel)) {
            woken += wake_by_system_call(w);
            k.post_completions();
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto waits = [](word& at) -> task<int> { co_return co_await io::futex_wait(&at, 0); };
    auto main = [](auto f, word& at) -> task<int> {
        auto h = coil::spawn(f(at));
        co_await sleep_for(1ms);
        h.cancel();
        co_return co_await h;
    };
    EXPECT_EQ(coil_test::run_on(ctx, main(waits, w)), 0);
    EXPECT_EQ(woken, 1);
}

TEST_F(Futex, G2_DestroyedWhileItWaits_TheWordHasNoWaiter) {
    auto waits = [](word& at) -> manual {
        co_await io::futex_wait(&at, 0);
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f) -> task<> {
        word w{0};
        for (int turns = 0; turns < 4; ++turns) {
            manual victim = f(w);
            victim.start();
            for (int i = 0; i < turns; ++i) {
                co_await io::nop();
            }
            victim.destroy();
            EXPECT_EQ(wake_by_system_call(w, 100), 0) << turns;
        }
    };
    coil::run(main(waits));
}

} // namespace
