// scope: children end before join() returns.

#include "compose/combinations.hpp"
#include "support/fault_environment.hpp"

#include <array>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

using namespace coil;
using namespace compose_test;
using coil_test::pipe_pair;

namespace {

class Scope : public ::testing::Test {
protected:
    listening_context ctx_;
};

task<> counts(int& count, std::chrono::nanoseconds after = 1ms) {
    co_await sleep_for(after);
    ++count;
}

TEST_F(Scope, JoinWaitsForAllChildren) {
    auto main = []() -> task<> {
        int count = 0;
        scope s;
        for (int i = 0; i < 100; ++i) {
            s.spawn(counts(count, i * 10us));
        }
        EXPECT_EQ(s.size(), 100U);
        EXPECT_EQ(count, 0);
        co_await s.join();
        EXPECT_EQ(count, 100);
        EXPECT_EQ(s.size(), 0U);
        co_await s.join(); // without children
        s.spawn(counts(count));
        co_await s.join();
        EXPECT_EQ(count, 101);
    };
    ctx_.run(main());
}

TEST_F(Scope, ChildrenMayBeAnyAwaitable) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        std::array<char, 2> text{};
        int count = 0;
        auto handle = spawn(gives(1));
        scope s;
        s.spawn(io::read(pipe.in, text));
        s.spawn(io::write(pipe.out, "ab") && io::nop());
        s.spawn(sleep_for(1ms));
        s.spawn(gives_later(4));
        s.spawn(when_all(counts(count), counts(count)));
        s.spawn(handle);
        s.spawn(spawn(counts(count)));
        s.spawn(timeout(counts(count), 1h));
        s.spawn(yield());
        co_await s.join();
        EXPECT_EQ(text[1], 'b');
        EXPECT_EQ(count, 4);
    };
    ctx_.run(main(p));
}

TEST_F(Scope, ChildrenSpawnChildren) {
    struct spawner {
        static task<> spawns(scope& s, int depth, int& count) {
            co_await yield();
            ++count;
            if (depth > 0) {
                s.spawn(spawns(s, depth - 1, count));
                s.spawn(spawns(s, depth - 1, count));
            }
        }
    };
    auto main = []() -> task<> {
        int count = 0;
        scope s;
        s.spawn(spawner::spawns(s, 9, count));
        co_await s.join();
        EXPECT_EQ(count, 1023);
    };
    ctx_.run(main());
}

TEST_F(Scope, SpawnedWhileTheJoinIsAboutToEnd) {
    auto main = []() -> task<> {
        int count = 0;
        scope s;
        auto joins = [](scope& all, int& n) -> task<int> {
            co_await all.join();
            co_return n;
        };
        s.spawn(counts(count, 0us));
        auto handle = coil::spawn(joins(s, count));
        while (s.size() > 0) {
            co_await yield();
        }
        s.spawn(counts(count)); // the joining task is ready already, and resumes after this
        EXPECT_EQ(co_await handle, 2);
    };
    ctx_.run(main());
}

// ---- failures

TEST_F(Scope, G12_JoinThrowsTheFirstExceptionWhichCancelsTheOthers) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        scope s;
        s.spawn(obeys(count));
        s.spawn(waits(count));
        s.spawn(spawn(obeys(count)));
        s.spawn(fails_later("first"));
        s.spawn(fails_when_cancelled("second"));
        s.spawn(when_all(fails_when_cancelled("third", 3), sleep_for(1h)));
        EXPECT_EQ(co_await complaint_of([](scope& all) -> task<> { co_await all.join(); }(s)),
                  "first");
        EXPECT_EQ(s.size(), 0U);
        EXPECT_TRUE(s.failed());
        EXPECT_THROW(s.spawn(obeys(count)), std::system_error); // it would be stopped at once
        co_await s.join();
    };
    ctx_.run(main(cancelled));
    EXPECT_EQ(cancelled, 3);
    EXPECT_EQ(ctx_.heard, (std::vector<std::string>{"second", "third"}));
}

TEST_F(Scope, AHandleAwaitsOneChildOrStopsIt) {
    auto main = []() -> task<> {
        int cancelled = 0;
        scope s;
        auto number = s.spawn(gives_later(7));
        auto stopped = s.spawn(obeys(cancelled));
        s.spawn(gives_later(8)); // dropping the handle does not stop the child
        co_await yield();
        stopped.cancel();
        co_await stopped;
        EXPECT_EQ(cancelled, 1);
        EXPECT_EQ(co_await number, 7);
        EXPECT_TRUE(number.done());
        co_await s.join();

        std::vector<child_handle<int>> many;
        for (int i = 0; i < 3; ++i) {
            many.push_back(s.spawn(gives_later(i)));
        }
        int sum = 0;
        for (auto& each : many) {
            sum += co_await each;
        }
        EXPECT_EQ(sum, 3);
        co_await s.join();
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(Scope, G12_AnAwaitedChildThatFailsStopsItsSiblings) {
    auto main = []() -> task<> {
        int cancelled = 0;
        scope s;
        auto bad = s.spawn(fails_later("first"));
        s.spawn(obeys(cancelled));
        EXPECT_EQ(co_await complaint_of([](auto& h) -> task<> { co_await h; }(bad)), "first");
        EXPECT_EQ(co_await complaint_of([](scope& all) -> task<> { co_await all.join(); }(s)),
                  "first");
        EXPECT_EQ(cancelled, 1);
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(Scope, G12_NeverJoined_ItsFailureIsReported) {
    auto main = []() -> task<> {
        {
            scope s;
            s.spawn(fails("unjoined"));
            co_await yield();
            co_await yield();
        }
        co_return;
    };
    ctx_.run(main());
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"unjoined"});
}

TEST_F(Scope, G3_CancelStopsAllChildren) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        scope s;
        s.spawn(obeys(count));
        s.spawn(waits(count)); // throws operation_canceled, which is not a failure
        co_await yield();
        s.cancel();
        EXPECT_TRUE(s.stop_token().stop_requested());
        EXPECT_EQ(s.size(), 2U);
        co_await s.join();
    };
    ctx_.run(main(cancelled));
    EXPECT_EQ(cancelled, 2);
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(Scope, G3_AStopOfTheJoiningTaskReachesTheChildren) {
    int cancelled = 0;
    auto work = [](int& count) -> task<> {
        scope s;
        s.spawn(obeys(count));
        s.spawn(shield(gives_later(1, 3ms)));
        co_await s.join();
    };
    auto main = [](auto f, int& count) -> task<> {
        auto handle = spawn(f(count));
        co_await sleep_for(1ms);
        handle.cancel();
        co_await handle;
        // Cancelled before it joins.
        handle = spawn(f(count));
        handle.cancel();
        co_await handle;
    };
    ctx_.run(main(work, cancelled));
    EXPECT_EQ(cancelled, 2);
}

TEST_F(Scope, G3_AStopOfItsTokenReachesTheChildrenAtAnyTime) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        inplace_stop_source source;
        scope s(source.get_token());
        s.spawn(obeys(count));
        co_await yield();
        source.request_stop();
        co_await sleep_for(1ms);
        EXPECT_EQ(count, 1); // join() was not called yet
        co_await s.join();
    };
    ctx_.run(main(cancelled));
}

TEST_F(Scope, G9_CancelledFromAnotherThread) {
    auto main = []() -> task<> {
        for (int i = 0; i < coil_test::rounds(50, 1000); ++i) {
            int cancelled = 0;
            scope s;
            s.spawn(obeys(cancelled));
            s.spawn(when_all(obeys(cancelled), sleep_for(1h)));
            std::jthread other([&s, i] {
                std::this_thread::sleep_for(i % 50 * 5us);
                s.cancel();
            });
            co_await s.join();
            EXPECT_EQ(cancelled, 2);
        }
    };
    ctx_.run(main());
}

// ---- destroyed

task<> holds_descriptor(int fd, int& destroyed) {
    const coil_test::on_destruction guard(destroyed);
    std::array<char, 8> buf{};
    co_await when_any(io::read(fd, buf), sleep_for(1h));
}

TEST_F(Scope, G2_G5_DestroyedWithoutJoin) {
    const pipe_pair p;
    auto main = [](int fd) -> task<> {
        for (int turns = 0; turns < 5; ++turns) {
            int destroyed = 0;
            {
                scope s;
                for (int i = 0; i < 10; ++i) {
                    s.spawn(holds_descriptor(fd, destroyed));
                }
                for (int i = 0; i < turns; ++i) {
                    co_await yield();
                }
            }
            EXPECT_EQ(destroyed, turns == 0 ? 0 : 10); // a task that never started has no locals
        }
        // The scope is destroyed by an exception.
        int destroyed = 0;
        EXPECT_EQ(co_await complaint_of([](int in, int& count) -> task<> {
                      scope s;
                      s.spawn(holds_descriptor(in, count));
                      co_await fails_later("in between");
                      co_await s.join();
                  }(fd, destroyed)),
                  "in between");
        EXPECT_EQ(destroyed, 1);
    };
    ctx_.run(main(p.in));
}

TEST_F(Scope, G5_DestroyedWhileItIsJoined) {
    const pipe_pair p;
    auto joins = [](int fd, int& destroyed) -> coil_test::manual {
        scope s;
        s.spawn(holds_descriptor(fd, destroyed));
        co_await s.join();
    };
    auto main = [](auto f, int fd) -> task<> {
        for (int turns = 0; turns < 5; ++turns) {
            int destroyed = 0;
            {
                const auto victim = f(fd, destroyed);
                victim.start();
                for (int i = 0; i < turns; ++i) {
                    co_await yield();
                }
            }
            EXPECT_EQ(destroyed, turns == 0 ? 0 : 1);
        }
    };
    ctx_.run(main(joins, p.in));
}

TEST_F(Scope, G5_AShutdownDestroysItsChildren) {
    const pipe_pair p;
    int destroyed = 0;
    auto main = [](int fd, int& count) -> task<> {
        scope s;
        for (int i = 0; i < 100; ++i) {
            s.spawn(holds_descriptor(fd, count));
        }
        co_await s.join();
    };
    ctx_.context.co_spawn(main(p.in, destroyed));
    ctx_.context.co_spawn(stops());
    ctx_.context.run();
    EXPECT_EQ(destroyed, 100);
}

TEST_F(Scope, G5_SharedByTasksThatAShutdownDestroysInAnyOrder) {
    // The order in which a shutdown destroys tasks is unspecified.
    const pipe_pair p;
    int destroyed = 0;
    auto owns = [](std::shared_ptr<scope> s, int fd, int& count) -> task<> {
        s->spawn(holds_descriptor(fd, count));
        co_await sleep_for(1h);
    };
    auto joins = [](scope& s) -> task<> { co_await s.join(); };
    for (const bool first : {true, false}) {
        auto shared = std::make_shared<scope>();
        scope& s = *shared;
        if (first) {
            ctx_.context.co_spawn(owns(std::move(shared), p.in, destroyed));
            ctx_.context.co_spawn(joins(s));
        } else {
            auto later = [](auto f, scope& all) -> task<> {
                co_await yield();
                co_await f(all);
            };
            ctx_.context.co_spawn(later(joins, s));
            ctx_.context.co_spawn(owns(std::move(shared), p.in, destroyed));
        }
        ctx_.context.co_spawn(stops());
        ctx_.context.run();
    }
    EXPECT_EQ(destroyed, 2);
}

TEST_F(Scope, G4_UnusedDescriptorsAreClosed) {
    const auto before = coil_test::open_descriptors();
    auto main = []() -> task<> {
        scope s;
        s.spawn(io::socket(AF_UNIX, SOCK_STREAM));
        s.spawn(when_all(io::socket(AF_UNIX, SOCK_STREAM), gives_later(1)));
        s.spawn(shield(io::openat(AT_FDCWD, "/dev/null", O_RDONLY)));
        co_await s.join();
    };
    ctx_.run(main());
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(Scope, AChildStaysOnItsContext) {
    io_context other;
    auto moves = [](io_context& to) -> task<> { co_await resume_on(to); };
    auto main = [](auto f, io_context& to) -> task<> {
        scope s;
        s.spawn(f(to));
        try {
            co_await s.join();
            ADD_FAILURE() << "the child has moved";
        } catch (const std::logic_error&) {
        }
    };
    ctx_.run(main(moves, other));
}

TEST_F(Scope, G1_AJoinerOfADestroyedScopeIsCancelled) {
    auto joins = [](scope& s) -> task<> { co_await s.join(); };
    auto main = [](auto j) -> task<> {
        auto s = std::make_unique<scope>();
        int cancelled = 0;
        s->spawn(obeys(cancelled));
        auto handle = spawn(complaint_of(j(*s)));
        co_await yield();
        co_await yield();
        s.reset();
        EXPECT_EQ(co_await handle, cancelled_text);
        EXPECT_EQ(cancelled, 0); // it was destroyed while suspended
        // All children have ended, and the joining coroutine has not been resumed.
        s = std::make_unique<scope>();
        auto destroys = [](std::unique_ptr<scope>& all) -> task<> {
            while (all->size() > 0) {
                co_await yield();
            }
            all.reset();
        };
        s->spawn([]() -> task<> {
            co_await yield();
            throw oops("first");
        }());
        co_spawn(destroys(s));
        auto second = spawn(complaint_of(j(*s)));
        EXPECT_EQ(co_await second, "first");
        EXPECT_EQ(s, nullptr);
    };
    ctx_.run(main(joins));
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(Scope, TwoConcurrentJoinsTerminateTheProgram) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto joins = [](scope& s) -> task<> { co_await s.join(); };
    auto both_wait = [](auto j) -> task<> {
        scope s;
        s.spawn([]() -> task<> { co_await sleep_for(1ms); }());
        co_await when_all(j(s), j(s));
    };
    EXPECT_DEATH(ctx_.run(both_wait(joins)), "two coroutines join one scope");
    auto one_is_woken = [](auto j) -> task<> {
        scope s;
        s.spawn([]() -> task<> { co_await yield(); }());
        auto first = spawn(j(s));
        co_await yield();
        while (s.size() > 0) {
            co_await yield();
        }
        co_await s.join();
        co_await first;
    };
    EXPECT_DEATH(ctx_.run(one_is_woken(joins)), "two coroutines join one scope");
}

TEST_F(Scope, G5_DestroyingTheScopeCancelsTheTaskOfAnOwnedHandle) {
    auto main = []() -> task<> {
        for (int turns = 0; turns < 4; ++turns) {
            int cancelled = 0;
            {
                scope s;
                s.spawn(spawn(obeys(cancelled)));
                for (int i = 0; i < turns; ++i) {
                    co_await yield();
                }
            }
            co_await sleep_for(1ms);
            EXPECT_EQ(cancelled, 1);
        }
        int named = 0;
        auto handle = spawn(obeys(named));
        {
            scope s;
            s.spawn(handle);
            co_await yield();
        }
        co_await sleep_for(1ms);
        EXPECT_EQ(named, 0); // its handle still exists
        handle.cancel();
        co_await handle;
    };
    ctx_.run(main());
}

/// With a search of the ready queue for each child, this test would take minutes.
TEST_F(Scope, G7_ManyReadyChildrenAreDestroyedInLinearTime) {
    using coil_test::on_destruction;
    int many = coil_test::sanitized || coil_test::under_faults() ? 10'000 : 200'000;
    int destroyed = 0;
    auto nothing = [](on_destruction) -> task<> { co_return; };
    auto sleeps = [](on_destruction) -> task<> { co_await sleep_for(1h); };
    auto main = [many, &destroyed](auto n, auto s) -> task<> {
        {
            scope unbegun;
            for (int i = 0; i < many; ++i) {
                unbegun.spawn(n(on_destruction(destroyed)));
            }
        }
        {
            scope cancelled;
            for (int i = 0; i < many; ++i) {
                cancelled.spawn(s(on_destruction(destroyed)));
            }
            co_await sleep_for(1ms);
            cancelled.cancel();
        }
        {
            std::vector<task<>> all;
            for (int i = 0; i < many; ++i) {
                all.push_back(n(on_destruction(destroyed)));
            }
            scope in_one;
            in_one.spawn(when_all(std::move(all)));
            co_await yield();
        }
    };
    const auto begin = coil_test::cpu_time();
    ctx_.run(main(nothing, sleeps));
    EXPECT_EQ(destroyed, 3 * many);
    EXPECT_LT(coil_test::cpu_time() - begin, 20s);
}

TEST_F(Scope, ItsTokenInformsTheOwnerAtOnceThatAChildHasFailed) {
    auto fails = []() -> task<> {
        co_await sleep_for(1ms);
        throw std::runtime_error("broken");
    };
    auto main = [&]() -> task<> {
        scope s;
        s.spawn(fails());
        EXPECT_EQ(co_await with_stop_token(sleep_for(1h), s.stop_token()), -ECANCELED);
        EXPECT_TRUE(s.failed());
        try {
            s.spawn(fails());
            ADD_FAILURE() << "it was not refused";
        } catch (const std::system_error& e) {
            EXPECT_NE(std::string(e.what()).find("a scope in which a child has failed"),
                      std::string::npos);
        }
        EXPECT_THROW(co_await s.join(), std::runtime_error);
    };
    coil::run(main());
}

} // namespace
