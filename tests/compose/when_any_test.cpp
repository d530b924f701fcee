// when_any: the first child to end, and its losers.

#include "compose/combinations.hpp"
#include "support/fault_environment.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>

using namespace coil;
using namespace compose_test;
using coil_test::pipe_pair;

namespace {

class WhenAny : public ::testing::Test {
protected:
    listening_context ctx_;
};

TEST_F(WhenAny, ReturnsTheFirstWithItsIndex) {
    auto nothing = []() -> task<> { co_await sleep_for(1ms); };
    int number = 3;
    auto refers = [](int& n) -> task<int&> { co_return n; };
    auto main = [](auto f, auto r, int& n) -> task<> {
        const auto begin = std::chrono::steady_clock::now();
        auto late = []() -> task<int> { co_return co_await sleep_for(1h); };
        auto first = co_await when_any(sleep_for(1h), late(), io::nop() && io::nop(), timeout(1h));
        static_assert(std::is_same_v<decltype(first.value),
                                     std::variant<io_result, int, io_result, io_result>>);
        EXPECT_EQ(first.index, 2U);
        EXPECT_EQ(std::get<2>(first.value), 0);

        const auto second = co_await when_any(sleep_for(1h), f());
        EXPECT_EQ(second.index, 1U);
        EXPECT_TRUE(std::holds_alternative<std::monostate>(second.value));

        const auto third = co_await when_any(r(n), sleep_for(1h));
        EXPECT_EQ(&std::get<0>(third.value).get(), &n);

        const auto fourth = co_await when_any(gives(4));
        EXPECT_EQ(fourth.index, 0U);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
    };
    ctx_.run(main(nothing, refers, number));
}

TEST_F(WhenAny, MoveOnlyValues) {
    auto owns = [](int n) -> task<std::unique_ptr<int>> {
        co_await yield();
        co_return std::make_unique<int>(n);
    };
    auto main = [](auto f) -> task<> {
        auto first = co_await when_any(f(1), f(2), f(3));
        EXPECT_EQ(first.index, 0U);
        EXPECT_EQ(*std::get<0>(first.value), 1);
        std::vector<task<std::unique_ptr<int>>> more;
        more.push_back(f(4));
        more.push_back(f(5));
        auto [index, value] = co_await when_any(std::move(more));
        EXPECT_EQ(index, 0U);
        EXPECT_EQ(*value, 4);
    };
    ctx_.run(main(owns));
}

TEST_F(WhenAny, Ranges) {
    auto main = []() -> task<> {
        std::vector<sleep_awaitable> sleeps;
        for (int i = 10; i > 0; --i) {
            sleeps.push_back(sleep_for(i * 1ms));
        }
        const auto [index, result] = co_await when_any(sleeps);
        EXPECT_EQ(index, 9U);
        EXPECT_EQ(result, 0);

        std::vector<task<>> tasks;
        int cancelled = 0;
        for (int i = 0; i < 100; ++i) {
            tasks.push_back(obeys(cancelled));
        }
        tasks.push_back([]() -> task<> { co_return; }());
        const auto last = co_await when_any(std::move(tasks));
        EXPECT_EQ(last.index, 100U);
        EXPECT_EQ(cancelled, 100);

        try {
            co_await when_any(std::vector<task<int>>());
            ADD_FAILURE() << "when_any() of an empty range returned";
        } catch (const std::invalid_argument&) {
        }
        try {
            co_await when_all(when_any(std::vector<task<int>>()), sleep_for(1h));
            ADD_FAILURE() << "when_any() of an empty range returned";
        } catch (const std::invalid_argument&) {
        }
    };
    ctx_.run(main());
}

TEST_F(WhenAny, G3_TheOthersAreCancelledAndWaitedFor) {
    const pipe_pair p;
    std::array<char, 8> buf{};
    bool ended = false;
    auto slow = [](bool& done) -> task<> {
        EXPECT_EQ(co_await sleep_for(1h), -ECANCELED);
        for (int i = 0; i < 100; ++i) {
            co_await yield();
        }
        done = true;
    };
    auto main = [](auto f, bool& done, const pipe_pair& pipe, std::span<char> b) -> task<> {
        auto first = co_await when_any(io::read(pipe.in, b), f(done), gives(1));
        EXPECT_EQ(first.index, 2U);
        EXPECT_TRUE(done);
        pipe.put("x");
        for (int i = 0; i < 10; ++i) {
            co_await yield();
        }
    };
    ctx_.run(main(slow, ended, p, buf));
    EXPECT_EQ(buf[0], 0); // G2: the kernel no longer writes to the buffer
}

TEST_F(WhenAny, ChildrenThatStartAfterTheEndAreCancelledAtOnce) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        const auto first = co_await when_any(this_task::stop_token(), sleep_for(1h), obeys(count));
        EXPECT_EQ(first.index, 0U);
        EXPECT_EQ(count, 1);
    };
    ctx_.run(main(cancelled));
}

TEST_F(WhenAny, ANegativeErrnoIsAResult) {
    auto main = []() -> task<> {
        std::array<char, 1> c{};
        const auto first = co_await when_any(sleep_for(1h), io::read(-1, c));
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(std::get<1>(first.value), -EBADF);
    };
    ctx_.run(main());
}

TEST_F(WhenAny, G12_AnExceptionThatIsFirstIsRethrown) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        co_await when_any(waits(count), fails_later("first"), sleep_for(1h));
    };
    EXPECT_EQ(ctx_.run(complaint_of(main(cancelled))), "first");
    EXPECT_EQ(cancelled, 1);
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(WhenAny, G12_ExceptionsOfLosersAreNotLost) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        auto handle = spawn(fails_when_cancelled("kept by its handle"));
        const auto first = co_await when_any(
            fails_when_cancelled("one"), gives_later(1), waits(count),
            when_all(fails_when_cancelled("two"), fails_when_cancelled("three", 5)),
            spawn(fails_when_cancelled("four", 10)), spawn(waits(count)), handle);
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(co_await complaint_of([](auto& h) -> task<> { co_await h; }(handle)),
                  "kept by its handle");
    };
    ctx_.run(main(cancelled));
    EXPECT_EQ(cancelled, 2);
    std::sort(ctx_.heard.begin(), ctx_.heard.end());
    EXPECT_EQ(ctx_.heard, (std::vector<std::string>{"four", "one", "three", "two"}));
}

TEST_F(WhenAny, G4_ADescriptorOfALoserIsClosed) {
    const coil_test::listener l;
    auto main = [](const coil_test::listener& server) -> task<> {
        for (int i = 0; i < 50; ++i) {
            const auto client = server.connect();
            // All of them have a result.
            const auto first = co_await when_any(
                yield(), io::accept(server.socket), io::socket(AF_UNIX, SOCK_STREAM),
                io::openat(AT_FDCWD, "/dev/null", O_RDONLY) && io::nop(),
                when_all(io::socket(AF_UNIX, SOCK_STREAM), io::nop()),
                when_any(io::socket(AF_UNIX, SOCK_STREAM)),
                timeout(io::socket(AF_UNIX, SOCK_STREAM), 1h));
            EXPECT_EQ(first.index, 0U);
        }
    };
    const auto before = coil_test::open_descriptors();
    ctx_.run(main(l));
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(WhenAny, G4_OfTwoAcceptsOneHasTheConnection) {
    const coil_test::listener l;
    auto main = [](const coil_test::listener& server) -> task<> {
        for (int i = 0; i < 20; ++i) {
            const auto client = server.connect();
            const auto first = co_await when_any(io::accept(server.socket),
                                                 io::accept(server.socket), sleep_for(1h));
            const int fd = std::visit([](auto n) -> int { return n; }, first.value);
            EXPECT_GE(fd, 0);
            const coil_test::descriptor peer(fd);
        }
    };
    const auto before = coil_test::open_descriptors();
    ctx_.run(main(l));
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(WhenAny, AnElementOfALoserStaysInTheStream) {
    auto main = []() -> task<> {
        auto ticks = io::timeout_multishot(1ms);
        std::uint64_t seen = 0;
        for (int i = 0; i < 50; ++i) {
            const auto first = co_await when_any(sleep_for(i % 20 * 100us), ticks.next());
            if (first.index == 1) {
                EXPECT_TRUE(std::get<1>(first.value).has_value());
                ++seen;
            }
        }
        EXPECT_TRUE(co_await ticks.next());
        EXPECT_GT(seen, 0U);
    };
    ctx_.run(main());
}

TEST_F(WhenAny, G3_ALosersConnectionIsNotLostInAStream) {
    // Every connection is accepted by exactly one next(), whichever child wins.
    const coil_test::listener l;
    auto main = [](const coil_test::listener& server) -> task<> {
        auto connections = io::accept_multishot(server.socket);
        std::vector<coil_test::descriptor> clients;
        int accepted = 0;
        for (int i = 0; i < 30; ++i) {
            clients.push_back(server.connect());
            const auto first = co_await when_any(yield(), connections.next());
            if (first.index == 1) {
                const coil_test::descriptor peer(*std::get<1>(first.value));
                ++accepted;
            }
        }
        while (accepted < 30) {
            auto next = co_await timeout(connections.next(), 5s);
            EXPECT_TRUE(next);
            if (!next) {
                co_return;
            }
            const coil_test::descriptor peer(*next);
            ++accepted;
        }
    };
    ctx_.run(main(l));
}

TEST_F(WhenAny, AnEagerOperationKeepsItsResult) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        std::array<char, 1> c{};
        auto pending = eager(io::read(pipe.in, c));
        auto first = co_await when_any(pending, sleep_for(1ms));
        EXPECT_EQ(first.index, 1U);
        EXPECT_TRUE(pending.is_complete()); // cancelled and waited for
        EXPECT_EQ(co_await pending, -ECANCELED);
    };
    ctx_.run(main(p));
}

TEST_F(WhenAny, G3_CancelledFromOutside) {
    auto work = []() -> task<int> {
        const auto first = co_await when_any(sleep_for(1h), sleep_for(2h));
        co_return static_cast<int>(std::visit([](auto n) -> int { return n; }, first.value));
    };
    auto main = [](auto f) -> task<> {
        auto handle = spawn(f());
        co_await sleep_for(1ms);
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        handle = spawn(f());
        handle.cancel(); // before it has started
        EXPECT_EQ(co_await handle, -ECANCELED);
    };
    ctx_.run(main(work));
}

TEST_F(WhenAny, G9_RacesBetweenTheEndAndAStopFromAnotherThread) {
    auto work = []() -> task<> {
        for (int i = 0; i < 20; ++i) {
            co_await when_any(sleep_for(20us), sleep_for(21us), gives_later(1, 19us),
                              when_any(sleep_for(20us), yield()));
        }
    };
    auto main = [](auto f) -> task<> {
        for (int i = 0; i < coil_test::rounds(50, 2000); ++i) {
            std::stop_source source;
            std::jthread other([source, i]() mutable {
                std::this_thread::sleep_for(i % 50 * 20us);
                source.request_stop();
            });
            co_await with_stop_token(f(), source.get_token());
        }
    };
    ctx_.run(main(work));
}

TEST_F(WhenAny, G2_G5_DestroyedWhileItWaitsAndWhileItsLosersEnd) {
    const pipe_pair p;
    auto waits_for_any = [](int fd, int& destroyed) -> coil_test::manual {
        auto holds = [](int& count) -> task<> {
            const coil_test::on_destruction guard(count);
            co_await sleep_for(1h);
            co_await yield();
        };
        std::array<char, 8> buf{};
        co_await when_any(io::read(fd, buf), holds(destroyed), sleep_for(0ms),
                          when_any(holds(destroyed), io::read(fd, buf)));
    };
    auto main = [](auto f, int fd) -> task<> {
        for (int turns = 0; turns < 12; ++turns) {
            int destroyed = 0;
            {
                const auto victim = f(fd, destroyed);
                victim.start();
                for (int i = 0; i < turns; ++i) {
                    co_await yield();
                }
                if (turns > 8) {
                    co_await sleep_for(1ms);
                }
            }
            EXPECT_TRUE(destroyed == 2 || turns == 0);
        }
    };
    ctx_.run(main(waits_for_any, p.in));
}

TEST_F(WhenAny, G5_AShutdownDestroysTheChildren) {
    const pipe_pair p;
    int destroyed = 0;
    auto main = [](int fd, coil_test::on_destruction guard) -> task<> {
        const auto local = std::move(guard);
        std::array<char, 8> buf{};
        std::vector<task<int>> tasks;
        int never = 0;
        for (int i = 0; i < 10; ++i) {
            tasks.push_back(waits(never));
        }
        co_await when_any(io::read(fd, buf), when_any(std::move(tasks)));
    };
    for (int i = 0; i < 10; ++i) {
        ctx_.context.co_spawn(main(p.in, coil_test::on_destruction(destroyed)));
    }
    ctx_.context.co_spawn(stops());
    ctx_.context.run();
    EXPECT_EQ(destroyed, 10);
}

std::size_t resident_kilobytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == "VmRSS:") {
            std::size_t kilobytes = 0;
            status >> kilobytes;
            return kilobytes;
        }
    }
    return 0;
}

TEST_F(WhenAny, TenSleepsInALoop_ConstantMemory) {
    auto round = []() -> task<std::size_t> {
        const auto first = co_await when_any(
            sleep_for(1h), sleep_for(1h), sleep_for(1h), sleep_for(1h), sleep_for(1h),
            sleep_for(1h), sleep_for(1h), sleep_for(1h), sleep_for(1h), sleep_for(0s));
        co_return first.index;
    };
    auto main = [](auto f) -> task<> {
        const int rounds = coil_test::rounds(20'000, 200'000);
        for (int i = 0; i < rounds / 10; ++i) {
            EXPECT_EQ(co_await f(), 9U);
        }
        const std::size_t before = resident_kilobytes();
        for (int i = 0; i < rounds; ++i) {
            EXPECT_EQ(co_await f(), 9U);
        }
        const std::size_t after = resident_kilobytes();
        if (!coil_test::sanitized) { // sanitizers keep freed memory
            EXPECT_LT(after, before + 1024);
        }
    };
    ctx_.run(main(round));
}

} // namespace
