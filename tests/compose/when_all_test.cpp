// when_all: packs and ranges of any awaitables.

#include "compose/combinations.hpp"
#include "support/fault_environment.hpp"

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <ranges>
#include <stop_token>
#include <thread>
#include <type_traits>

using namespace coil;
using namespace compose_test;
using coil_test::pipe_pair;

namespace {

class WhenAll : public ::testing::Test {
protected:
    listening_context ctx_;
};

TEST_F(WhenAll, ReturnsATupleInTheirOrder) {
    auto nothing = []() -> task<> { co_return; };
    auto main = [](auto f) -> task<> {
        auto [a, b, c, d, e] =
            co_await when_all(gives_later(1, 2ms), f(), gives(3), io::nop(), sleep_for(1ms));
        static_assert(std::is_same_v<decltype(a), int>);
        static_assert(std::is_same_v<decltype(b), std::monostate>);
        static_assert(std::is_same_v<decltype(d), io_result>);
        EXPECT_EQ(a, 1);
        EXPECT_EQ(c, 3);
        EXPECT_EQ(d, 0);
        EXPECT_EQ(e, 0);
        const std::tuple<> none = co_await when_all();
        static_cast<void>(none);
    };
    ctx_.run(main(nothing));
}

TEST_F(WhenAll, ChildrenRunConcurrently) {
    auto main = []() -> task<> {
        const auto begin = std::chrono::steady_clock::now();
        co_await when_all(sleep_for(20ms), gives_later(1, 20ms), timeout(20ms));
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 50ms);
    };
    ctx_.run(main());
}

TEST_F(WhenAll, OneChildMayWaitForAnother) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        std::array<char, 5> text{};
        auto [got, put] = co_await when_all(io::read(pipe.in, text), io::write(pipe.out, "hello"));
        EXPECT_EQ(got, 5);
        EXPECT_EQ(put, 5);
        EXPECT_EQ(text[4], 'o');
        // Chains and timeouts.
        auto [chain, late, last] =
            co_await when_all(io::write(pipe.out, "x") && io::nop(),
                              timeout(io::read(pipe.in, text) && io::read(pipe.in, text), 3ms),
                              io::nop() && io::nop());
        EXPECT_EQ(chain, 0);
        EXPECT_EQ(late, -ECANCELED);
        EXPECT_EQ(last, 0);
    };
    ctx_.run(main(p));
}

TEST_F(WhenAll, ReferencesAndMoveOnlyValues) {
    int number = 1;
    auto refers = [](int& n) -> task<int&> { co_return n; };
    auto owns = [](int n) -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(n); };
    auto main = [](auto r, auto o, int& n) -> task<> {
        auto [a, b] = co_await when_all(r(n), o(2));
        static_assert(std::is_same_v<decltype(a), int&>);
        a = 5;
        EXPECT_EQ(*b, 2);
        std::vector<task<int&>> references;
        references.push_back(r(n));
        const std::vector<std::reference_wrapper<int>> same =
            co_await when_all(std::move(references));
        EXPECT_EQ(&same[0].get(), &n);
        std::vector<task<std::unique_ptr<int>>> owners;
        for (int i = 0; i < 3; ++i) {
            owners.push_back(o(i));
        }
        const auto values = co_await when_all(std::move(owners));
        EXPECT_EQ(*values[2], 2);
    };
    ctx_.run(main(refers, owns, number));
    EXPECT_EQ(number, 5);
}

TEST_F(WhenAll, Ranges) {
    auto main = []() -> task<> {
        std::vector<task<int>> tasks;
        for (int i = 0; i < 1000; ++i) {
            tasks.push_back(i % 3 == 0 ? gives(i) : gives_later(i, i * 1us));
        }
        const std::vector<int> values = co_await when_all(std::move(tasks));
        for (int i = 0; i < 1000; ++i) {
            EXPECT_EQ(values[static_cast<std::size_t>(i)], i);
        }
        std::vector<task<>> nothing;
        for (int i = 0; i < 3; ++i) {
            nothing.push_back([](int n) -> task<> { co_await sleep_for(n * 1us); }(i));
        }
        static_assert(std::is_void_v<await_result_t<decltype(when_all(std::move(nothing)))>>);
        co_await when_all(std::move(nothing));
        EXPECT_TRUE((co_await when_all(std::vector<task<int>>())).empty());

        std::list<sleep_awaitable> sleeps(5, sleep_for(1ms));
        EXPECT_EQ((co_await when_all(sleeps)).size(), 5U);
        EXPECT_EQ((co_await when_all(std::move(sleeps))).size(), 5U);
        const auto made = co_await when_all(std::views::iota(0, 4) |
                                            std::views::transform([](int i) { return gives(i); }));
        EXPECT_EQ(made, (std::vector{0, 1, 2, 3}));
        auto view = std::views::iota(0, 2) | std::views::transform([](int) { return io::nop(); });
        EXPECT_EQ((co_await when_all(view)).size(), 2U);
    };
    ctx_.run(main());
}

TEST_F(WhenAll, JoinHandlesEagerOperationsAndStreams) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        auto handle = spawn(gives_later(1));
        std::vector<join_handle<int>> handles;
        handles.push_back(spawn(gives(2)));
        handles.push_back(spawn(gives_later(3)));
        std::array<char, 1> c{};
        auto pending = eager(io::read(pipe.in, c));
        auto ticks = io::timeout_multishot(1ms);
        auto [a, b, n, put, tick, y] = co_await when_all(
            handle, when_all(handles), pending, io::write(pipe.out, "x"), ticks.next(), yield());
        EXPECT_EQ(a, 1);
        EXPECT_EQ(b, (std::vector{2, 3}));
        EXPECT_EQ(n, 1);
        EXPECT_EQ(put, 1);
        EXPECT_TRUE(tick);
    };
    ctx_.run(main(p));
}

TEST_F(WhenAll, Nested) {
    auto main = []() -> task<int> {
        auto [left, right] = co_await when_all(when_all(gives(1), gives_later(2)),
                                               when_all(when_all(gives(3)), when_any(gives(4))));
        co_return std::get<0>(left) + std::get<1>(left) + std::get<0>(std::get<0>(right)) +
            std::get<0>(std::get<1>(right).value);
    };
    EXPECT_EQ(ctx_.run(main()), 10);
}

/// A tree of tasks, each of which waits for two others.
task<int> tree(int depth) {
    if (depth == 0) {
        co_return 1;
    }
    auto [a, b] = co_await when_all(tree(depth - 1), tree(depth - 1));
    co_return a + b;
}

TEST_F(WhenAll, Trees) { EXPECT_EQ(ctx_.run(tree(10)), 1024); }

TEST_F(WhenAll, G10_ThatCompleteAtOnceDoNotGrowTheStack) {
    auto main = []() -> task<> {
        for (int i = 0; i < coil_test::rounds(100'000, 10'000'000); ++i) {
            co_await when_all();
            co_await when_all(this_task::stop_token());
        }
    };
    ctx_.run(main());
}

/// when_all inside when_all, nested as deeply as tasks may be.
task<int> deep(int depth) {
    if (depth == 0) {
        co_return 0;
    }
    auto [n] = co_await when_all(deep(depth - 1));
    co_return n + 1;
}

TEST_F(WhenAll, G10_DepthDoesNotGrowTheStack) { EXPECT_EQ(ctx_.run(deep(50'000)), 50'000); }

/// The same, but the innermost task waits.
task<int> deep_wait(int depth) {
    if (depth == 0) {
        co_return co_await sleep_for(1h);
    }
    auto [n] = co_await when_all(deep_wait(depth - 1));
    co_return n;
}

TEST_F(WhenAll, G3_CancelledAtTheBottomOfThousands) {
    auto main = []() -> task<> {
        auto handle = spawn(deep_wait(2000));
        co_await sleep_for(5ms);
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
    };
    ctx_.run(main());
}

TEST_F(WhenAll, MovedBeforeItIsAwaited) {
    auto main = []() -> task<int> {
        auto both = when_all(gives(1), io::nop(), gives_later(2));
        auto moved = std::move(both);
        auto [a, b, c] = co_await std::move(moved);
        co_return a + b + c;
    };
    EXPECT_EQ(ctx_.run(main()), 3);
}

TEST_F(WhenAll, NothingHappensUnlessItIsAwaited) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        auto unused = when_all(waits(count), io::nop());
        static_cast<void>(unused);
        co_return;
    };
    ctx_.run(main(cancelled));
    EXPECT_EQ(cancelled, 0);
}

// ---- failures

TEST_F(WhenAll, G12_TheFirstExceptionIsRethrownAndCancelsTheOthers) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        co_await when_all(waits(count), fails_later("first"), obeys(count), sleep_for(1h));
        ADD_FAILURE() << "the coroutine was resumed";
    };
    EXPECT_EQ(ctx_.run(complaint_of(main(cancelled))), "first");
    EXPECT_EQ(cancelled, 2);
    EXPECT_TRUE(ctx_.heard.empty()); // cancellations are not reported
}

TEST_F(WhenAll, G12_AfterAnImmediateExceptionTheOthersStartCancelled) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        co_await when_all(fails("at once"), waits(count), obeys(count));
    };
    EXPECT_EQ(ctx_.run(complaint_of(main(cancelled))), "at once");
    EXPECT_EQ(cancelled, 2);
}

TEST_F(WhenAll, G12_TheOthersAreWaitedFor) {
    bool ended = false;
    auto slow = [](bool& done) -> task<> {
        co_await sleep_for(1h);
        for (int i = 0; i < 100; ++i) {
            co_await yield();
        }
        done = true;
    };
    auto main = [](auto f, bool& done) -> task<> { co_await when_all(f(done), fails("now")); };
    EXPECT_EQ(ctx_.run(complaint_of(main(slow, ended))), "now");
    EXPECT_TRUE(ended);
}

TEST_F(WhenAll, G12_FurtherExceptionsAreNotLost) {
    auto main = []() -> task<> {
        co_await when_all(fails("one"), fails("two"), fails_when_cancelled("three"));
    };
    EXPECT_EQ(ctx_.run(complaint_of(main())), "one");
    EXPECT_EQ(ctx_.heard, (std::vector<std::string>{"two", "three"}));
}

TEST_F(WhenAll, G12_InRanges) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        std::vector<task<int>> tasks;
        for (int i = 0; i < 10; ++i) {
            tasks.push_back(waits(count));
        }
        tasks.push_back(fails_later("eleventh"));
        tasks.push_back(fails_when_cancelled("twelfth"));
        co_await when_all(std::move(tasks));
    };
    EXPECT_EQ(ctx_.run(complaint_of(main(cancelled))), "eleventh");
    EXPECT_EQ(cancelled, 10);
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"twelfth"});
}

TEST_F(WhenAll, G12_OfJoinHandlesAndNestedOnes) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        auto handle = spawn(obeys(count)); // keeps its unused result
        co_await when_all(handle, spawn(obeys(count)),
                          when_all(waits(count), spawn(fails("deep"))));
    };
    EXPECT_EQ(ctx_.run(complaint_of(main(cancelled))), "deep");
    EXPECT_EQ(cancelled, 3); // the tasks of join handles are asked to stop as well
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(WhenAll, ANegativeErrnoIsAnOrdinaryValue) {
    auto main = []() -> task<> {
        std::array<char, 1> c{};
        auto [bad, good] = co_await when_all(io::read(-1, c), sleep_for(2ms));
        EXPECT_EQ(bad, -EBADF);
        EXPECT_EQ(good, 0); // no child was cancelled
    };
    ctx_.run(main());
}

TEST_F(WhenAll, G4_DescriptorsOfTheOthersAreClosedWhenOneFails) {
    const coil_test::listener l;
    const auto before = coil_test::open_descriptors();
    {
        const auto client = l.connect();
        auto main = [](int fd) -> task<> {
            co_await when_all(io::accept(fd), fails_later("too bad", 5ms),
                              io::openat(AT_FDCWD, "/dev/null", O_RDONLY),
                              when_all(io::socket(AF_UNIX, SOCK_STREAM)));
        };
        EXPECT_EQ(ctx_.run(complaint_of(main(l.socket))), "too bad");
    }
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

// ---- cancelled from outside

TEST_F(WhenAll, G3_CancelledFromOutside) {
    const pipe_pair p;
    auto work = [](int fd, int& count) -> task<std::string> {
        std::array<char, 1> c{};
        try {
            auto [n, s, more] = co_await when_all(io::read(fd, c), sleep_for(1h),
                                                  when_all(io::read(fd, c), obeys(count)));
            EXPECT_EQ(n, -ECANCELED);
            EXPECT_EQ(s, -ECANCELED);
            EXPECT_EQ(std::get<0>(more), -ECANCELED);
            co_await when_all(waits(count));
        } catch (const std::system_error& e) {
            co_return e.code().message();
        }
        co_return "went on";
    };
    auto main = [](auto f, int fd, int& count) -> task<> {
        for (const auto turns : {0, 1, 2, 5}) {
            auto handle = spawn(f(fd, count));
            for (int i = 0; i < turns; ++i) {
                co_await yield();
            }
            handle.cancel();
            EXPECT_EQ(co_await handle, cancelled_text);
        }
    };
    int cancelled = 0;
    ctx_.run(main(work, p.in, cancelled));
    EXPECT_EQ(cancelled, 8);
}

TEST_F(WhenAll, G9_CancelledFromAnotherThreadAtAnyTime) {
    auto work = []() -> task<> {
        for (int i = 0; i < 20; ++i) {
            co_await when_all(sleep_for(20us), yield(), gives_later(1, 10us),
                              when_all(sleep_for(10us), io::nop()));
        }
    };
    auto main = [](auto f) -> task<> {
        for (int i = 0; i < coil_test::rounds(50, 2000); ++i) {
            std::stop_source source;
            std::jthread other([source, i]() mutable {
                std::this_thread::sleep_for(i % 50 * 10us);
                source.request_stop();
            });
            co_await with_stop_token(f(), source.get_token());
        }
    };
    ctx_.run(main(work));
}

TEST_F(WhenAll, G3_AStopAfterAllHaveEndedKeepsTheResults) {
    auto main = []() -> task<> {
        inplace_stop_source source;
        auto stops_at_its_end = [](inplace_stop_source& s) -> task<int> {
            s.request_stop();
            co_return 7;
        };
        auto work = [](auto f, inplace_stop_source& s) -> task<> {
            auto [a, b] = co_await when_all(io::nop() && io::nop(), f(s));
            EXPECT_TRUE(a == 0 || a == -ECANCELED);
            EXPECT_EQ(b, 7);
        };
        co_await with_stop_token(work(stops_at_its_end, source), source.get_token());
    };
    ctx_.run(main());
}

// ---- destroyed

task<> holds(int& destroyed, int& cancelled) {
    const coil_test::on_destruction guard(destroyed);
    cancelled += co_await sleep_for(1h) == -ECANCELED ? 1 : 0;
}

coil_test::manual awaits_all(int fd, int& destroyed, int& cancelled) {
    std::array<char, 8> buf{};
    std::vector<task<>> tasks;
    for (int i = 0; i < 3; ++i) {
        tasks.push_back(holds(destroyed, cancelled));
    }
    co_await when_all(io::read(fd, buf), holds(destroyed, cancelled), sleep_for(1h), yield(),
                      when_all(std::move(tasks)), timeout(io::read(fd, buf), 1h),
                      spawn(holds(destroyed, cancelled)));
    ADD_FAILURE() << "the coroutine was resumed";
}

TEST_F(WhenAll, G2_G5_DestroyedWhileItWaits) {
    const pipe_pair p;
    auto main = [](int fd) -> task<> {
        for (int turns = 0; turns < 6; ++turns) {
            int destroyed = 0;
            int cancelled = 0;
            {
                const auto victim = awaits_all(fd, destroyed, cancelled);
                victim.start();
                for (int i = 0; i < turns; ++i) {
                    co_await yield();
                }
            }
            EXPECT_TRUE(destroyed == 4 || turns < 2);
            // The task of the join_handle does not belong to the frame, but is asked to stop.
            co_await sleep_for(1ms);
            EXPECT_EQ(cancelled, 1);
        }
    };
    ctx_.run(main(p.in));
}

TEST_F(WhenAll, G5_AShutdownDestroysTheChildren) {
    const pipe_pair p;
    int destroyed = 0;
    auto holds = [](int fd, coil_test::on_destruction guard) -> task<> {
        const auto local = std::move(guard);
        std::array<char, 8> buf{};
        co_await when_all(io::read(fd, buf), when_any(sleep_for(1h), io::read(fd, buf)));
    };
    auto main = [](auto f, int fd, int& count) -> task<> {
        std::vector<task<>> tasks;
        for (int i = 0; i < 100; ++i) {
            tasks.push_back(f(fd, coil_test::on_destruction(count)));
        }
        co_await when_all(when_all(std::move(tasks)), f(fd, coil_test::on_destruction(count)));
    };
    ctx_.context.co_spawn(main(holds, p.in, destroyed));
    ctx_.context.co_spawn(stops());
    ctx_.context.run();
    EXPECT_EQ(destroyed, 101);
    EXPECT_EQ(ctx_.context.load(), 0U);
}

TEST_F(WhenAll, G4_G12_DestroyedAfterTheLastChildEndedAndBeforeItResumes) {
    const coil_test::listener l;
    const auto before = coil_test::open_descriptors();
    {
        const auto client = l.connect();
        auto accepts = [](int fd) -> coil_test::manual {
            co_await when_all(io::accept(fd), io::accept(fd));
            ADD_FAILURE() << "the coroutine was resumed";
        };
        auto throws = []() -> coil_test::manual { co_await when_all(fails("unheard")); };
        auto main = [](auto a, auto t, int fd) -> task<> {
            std::optional<coil_test::manual> victim(a(fd));
            victim->start();
            co_await sleep_for(2ms); // one of the two has a connection
            victim.reset();
            std::optional<coil_test::manual> other(t());
            other->start();
            co_await yield(); // `other`'s child has run; `other` would resume after this coroutine
            other.reset();
        };
        ctx_.run(main(accepts, throws, l.socket));
    }
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"unheard"});
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(WhenAll, AChildCannotLeaveItsParentsContext) {
    io_context other;
    other.start();
    auto moves = [](io_context& to) -> task<> {
        co_await resume_on(this_context()); // does not move
        co_await resume_on(to);
        ADD_FAILURE() << "the child moved to another context";
    };
    auto works_there = []() -> task<std::thread::id> { co_return std::this_thread::get_id(); };
    auto main = [](auto m, auto w, io_context& to) -> task<> {
        int cancelled = 0;
        try {
            co_await when_all(m(to), waits(cancelled));
            ADD_FAILURE() << "the coroutine was resumed";
        } catch (const std::logic_error& e) {
            EXPECT_NE(std::string(e.what()).find("ctx.spawn(task)"), std::string::npos);
        }
        EXPECT_EQ(cancelled, 1);
        // The alternative that the message names.
        auto [id, here] = co_await when_all(to.spawn(w()), w());
        EXPECT_NE(id, here);
        EXPECT_EQ(here, std::this_thread::get_id());
    };
    ctx_.run(main(moves, works_there, other));
    other.join();
}

} // namespace
