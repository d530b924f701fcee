// supervisor and child_handle: siblings that do not stop each other, a limit on concurrent
// children, and a join with a grace period.

#include "compose/combinations.hpp"

#include <coil/compose/supervisor.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

using namespace coil;
using namespace compose_test;

namespace {

class Supervisor : public ::testing::Test {
protected:
    listening_context ctx_;
};

task<> fails_after(const char* why, std::chrono::nanoseconds after = 0ns) {
    co_await sleep_for(after);
    throw std::runtime_error(why);
}

std::string text_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        return e.what();
    }
}

TEST_F(Supervisor, AFailureIsReportedAndTheSiblingsContinue) {
    std::vector<std::string> failures;
    int done = 0;
    auto main = [](std::vector<std::string>& list, int& count) -> task<> {
        supervisor s{
            {.on_failure = [&list](const std::exception_ptr& error, std::string_view name) {
                list.push_back(std::string(name) + ": " + text_of(error));
            }}};
        auto works = [](int& n) -> task<> {
            co_await sleep_for(2ms);
            ++n;
        };
        co_await s.spawn(fails_after("one"), "first");
        co_await s.spawn(works(count));
        co_await s.spawn(fails_after("two", 1ms), "second");
        co_await s.spawn(works(count));
        EXPECT_EQ(s.size(), 4U);
        co_await s.join();
        EXPECT_EQ(s.size(), 0U);
    };
    ctx_.run(main(failures, done));
    EXPECT_EQ(done, 2);
    EXPECT_EQ(failures, (std::vector<std::string>{"first: one", "second: two"}));
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(Supervisor, WithoutAHandlerTheContextIsNotified) {
    auto main = []() -> task<> {
        supervisor s;
        s.spawn(fails_after("unjoined"));
        co_await s.join();
        supervisor throws{
            {.on_failure = [](const std::exception_ptr&) { throw std::runtime_error("handler"); }}};
        throws.spawn(fails_after("x"));
        co_await throws.join();
    };
    ctx_.run(main());
    EXPECT_EQ(ctx_.heard, (std::vector<std::string>{"unjoined", "handler"}));
}

TEST_F(Supervisor, LimitsTheNumberOfConcurrentChildren) {
    struct counts {
        int running = 0;
        int most = 0;
        std::vector<int> order;
    };
    auto child = [](counts& c, int i) -> task<int> {
        c.order.push_back(i);
        c.most = std::max(c.most, ++c.running);
        co_await sleep_for(1ms);
        --c.running;
        co_return i;
    };
    auto main = [](auto f) -> task<> {
        counts c;
        supervisor s{{.max_children = 3}};
        for (int i = 0; i < 10; ++i) {
            co_await s.spawn(f(c, i));
            EXPECT_LE(s.size(), 3U); // an awaited spawn waits until a child has ended
        }
        for (int i = 10; i < 20; ++i) {
            s.spawn(f(c, i)); // queued
        }
        EXPECT_GE(s.size(), 10U);
        EXPECT_LE(s.size(), 13U);
        EXPECT_GE(s.held_back(), s.size() - 3U);
        co_await s.join();
        EXPECT_EQ(c.most, 3);
        EXPECT_EQ(c.order.size(), 20U);
        EXPECT_TRUE(std::ranges::is_sorted(c.order));
    };
    ctx_.run(main(child));
}

coil_test::manual spawns_from_outside(supervisor& s, int& cancelled) {
    co_await s.spawn(obeys(cancelled));
}

TEST_F(Supervisor, G3_AStoppedSpawnTakesItsChildBack) {
    auto spawns = [](supervisor& s, bool& ran) -> task<> {
        auto child = [](bool& flag) -> task<> {
            flag = true;
            co_return;
        };
        co_await s.spawn(child(ran));
    };
    auto main = [](auto f) -> task<> {
        int cancelled = 0;
        bool ran = false;
        supervisor s{{.max_children = 1}};
        co_await s.spawn(obeys(cancelled));
        auto waiting = spawn(f(s, ran));
        co_await sleep_for(1ms);
        EXPECT_EQ(s.size(), 2U);
        waiting.cancel();
        EXPECT_EQ(co_await complaint_of([](auto& h) -> task<> { co_await h; }(waiting)),
                  "Operation canceled");
        EXPECT_EQ(s.size(), 1U);
        {
            // Destroyed while it waits.
            auto again = spawns_from_outside(s, cancelled);
            again.start();
            EXPECT_EQ(s.size(), 2U);
        }
        EXPECT_EQ(s.size(), 1U);
        s.cancel();
        co_await s.join();
        EXPECT_FALSE(ran);
        EXPECT_EQ(cancelled, 1);
    };
    ctx_.run(main(spawns));
}

TEST_F(Supervisor, AHandleStopsOneChildAndAwaitsIt) {
    auto main = []() -> task<> {
        int cancelled = 0;
        supervisor s;
        auto number = co_await s.spawn(gives_later(5));
        auto stopped = co_await s.spawn(obeys(cancelled), "stopped");
        auto other = co_await s.spawn(gives_later(6, 3ms));
        EXPECT_EQ(stopped.name(), "stopped");
        EXPECT_FALSE(stopped.done());
        stopped.cancel();
        co_await stopped;
        EXPECT_TRUE(stopped.done());
        EXPECT_EQ(cancelled, 1);
        EXPECT_EQ(co_await number, 5);
        EXPECT_EQ(co_await other, 6);
        auto failing = co_await s.spawn(fails_after("mine"));
        std::string text;
        try {
            co_await failing;
        } catch (const std::runtime_error& e) {
            text = e.what();
        }
        EXPECT_EQ(text, "mine");
        co_await s.join();
    };
    ctx_.run(main());
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"mine"}); // on_failure is called as well
}

TEST_F(Supervisor, AHandleOutlivesItsSupervisor) {
    auto main = []() -> task<> {
        int cancelled = 0;
        std::optional<supervisor> s(std::in_place);
        child_handle<> obeying = s->spawn(obeys(cancelled));
        co_await sleep_for(1ms);
        auto waits = [](child_handle<>& h) -> task<> { co_await h; };
        auto waiting = spawn(complaint_of(waits(obeying)));
        co_await sleep_for(1ms);
        s.reset();
        EXPECT_EQ(co_await waiting, "Operation canceled");
        EXPECT_TRUE(obeying.done());
        obeying.cancel();
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(Supervisor, G3_AWaitForAChildEndsByAStopAndByALimit) {
    auto main = []() -> task<> {
        int cancelled = 0;
        supervisor s;
        auto child = co_await s.spawn(obeys(cancelled));
        auto waits = [](child_handle<>& h) -> task<> { co_await h; };
        EXPECT_EQ(co_await complaint_of(
                      [](auto f, auto& c) -> task<> { co_await timeout(f(c), 1ms); }(waits, child)),
                  timed_out_text);
        const auto first = co_await when_any(waits(child), sleep_for(1ms));
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(cancelled, 0);
        s.cancel();
        co_await child;
        co_await s.join();
    };
    ctx_.run(main());
}

TEST_F(Supervisor, JoinWithAGraceAsksWaitsAndThenDestroys) {
    auto stubborn = [](bool& destroyed) -> task<> {
        struct witness {
            bool& flag;
            ~witness() { flag = true; }
        } const here(destroyed);
        co_await shield(sleep_for(1h));
    };
    auto main = [](auto f) -> task<> {
        int cancelled = 0;
        bool destroyed = false;
        supervisor polite;
        co_await polite.spawn(obeys(cancelled));
        EXPECT_TRUE(co_await polite.join(1h));

        supervisor s;
        co_await s.spawn(f(destroyed));
        co_await s.spawn(obeys(cancelled));
        EXPECT_FALSE(co_await s.join(5ms));
        EXPECT_TRUE(destroyed);
        EXPECT_EQ(cancelled, 2);
        EXPECT_EQ(s.size(), 0U);
    };
    ctx_.run(main(stubborn));
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(Supervisor, TryJoinForDoesNotAskTheChildrenToStop) {
    auto main = []() -> task<> {
        int cancelled = 0;
        supervisor s;
        EXPECT_TRUE(co_await s.try_join_for(1h));
        co_await s.spawn(obeys(cancelled));
        EXPECT_FALSE(co_await s.try_join_for(2ms));
        EXPECT_EQ(cancelled, 0);
        s.cancel();
        EXPECT_TRUE(co_await s.try_join_for(1h));
        EXPECT_EQ(cancelled, 1);
    };
    ctx_.run(main());
}

TEST_F(Supervisor, AStopOfTheJoiningTaskReachesTheChildren) {
    auto main = []() -> task<> {
        int cancelled = 0;
        auto joins = [](int& n) -> task<> {
            supervisor s;
            co_await s.spawn(obeys(n));
            co_await s.join();
        };
        auto handle = spawn(joins(cancelled));
        co_await sleep_for(1ms);
        handle.cancel();
        co_await handle;
        EXPECT_EQ(cancelled, 1);

        inplace_stop_source source;
        supervisor s({}, source.get_token());
        co_await s.spawn(obeys(cancelled));
        co_await sleep_for(1ms);
        source.request_stop();
        co_await s.join();
        EXPECT_EQ(cancelled, 2);
    };
    ctx_.run(main());
}

TEST_F(Supervisor, G5_AShutdownDestroysIt) {
    int live = 0;
    auto main = [](int& n) -> task<> {
        struct counted {
            int& n;
            explicit counted(int& count) : n(++count) {}
            ~counted() { --n; }
        };
        auto child = [](int& count) -> task<> {
            const counted here(count);
            co_await sleep_for(1h);
        };
        supervisor s{{.max_children = 2}};
        for (int i = 0; i < 5; ++i) {
            s.spawn(child(n));
        }
        co_await sleep_for(1ms);
        EXPECT_EQ(n, 2);
        this_context().stop();
        co_await s.join();
        ADD_FAILURE() << "join() returned after the context was stopped";
    };
    io_context ctx;
    ctx.co_spawn(main(live));
    ctx.run();
    EXPECT_EQ(live, 0);
}

TEST_F(Supervisor, AChildIsRestartedWithBackOff) {
    int attempts = 0;
    std::vector<std::string> failures;
    auto main = [](int& n, std::vector<std::string>& list) -> task<> {
        supervisor s{
            {.on_failure = [&list](const std::exception_ptr& error, std::string_view name) {
                list.push_back(std::string(name) + ": " + text_of(error));
            }}};
        const auto begin = std::chrono::steady_clock::now();
        auto works = [&n]() -> task<> {
            if (++n < 4) {
                throw std::runtime_error(std::to_string(n));
            }
            co_return;
        };
        co_await s.spawn_restarting(works, {.initial_delay = 1ms}, "w");
        co_await s.join();
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 7ms);
        n = 0;
        auto never = [&n]() -> task<> {
            ++n;
            throw std::runtime_error("never");
            co_return;
        };
        co_await s.spawn_restarting(never, {.initial_delay = 0ms, .max_restarts = 2}, "n");
        co_await s.join();
        EXPECT_EQ(n, 3);
        co_await s.spawn_restarting(never, {.initial_delay = 1h}, "stopped");
        co_await sleep_for(1ms);
        EXPECT_TRUE(co_await s.join(1h)); // a stop ends the wait for the next attempt
    };
    ctx_.run(main(attempts, failures));
    EXPECT_EQ(failures, (std::vector<std::string>{"w: 1", "w: 2", "w: 3", "n: never", "n: never",
                                                  "n: never", "stopped: never"}));
}

TEST_F(Supervisor, ADestroyedJoinLeavesTheChildrenOfAnotherFrame) {
    auto works = [](int& count) -> task<> {
        co_await sleep_for(5ms);
        ++count;
    };
    auto joins = [](supervisor& s) -> task<> { co_await s.join(); };
    int ended = 0;
    auto main = [](auto work, auto join, int& n) -> task<> {
        supervisor local;
        const auto other = std::make_unique<supervisor>();
        co_await local.spawn(work(n));
        co_await other->spawn(work(n));
        {
            coil::scope joining;
            joining.spawn(join(local));
            joining.spawn(join(*other));
            co_await yield();
            co_await yield();
        }
        EXPECT_EQ(local.size() + other->size(), 2U);
        co_await local.join();
        co_await other->join();
    };
    ctx_.run(main(works, joins, ended));
    EXPECT_EQ(ended, 2);
}

TEST_F(Supervisor, AJoinIsATask) {
    auto main = []() -> task<> {
        supervisor s;
        co_await s.spawn(sleep_for(1ms));
        task<> stored = s.join();
        co_await std::move(stored);
        EXPECT_EQ(s.size(), 0U);
        co_await s.spawn(sleep_for(1ms));
        co_await when_all(s.join(), sleep_for(0ms));
        co_await s.spawn(sleep_for(1ms));
        std::vector<task<>> several;
        several.push_back(s.join());
        co_await when_all(std::move(several));
        EXPECT_EQ(s.size(), 0U);
        co_await s.spawn(sleep_for(1ms));
        co_await timeout(s.join(), 1h);
        EXPECT_TRUE(co_await coil::spawn(s.join(1h)));
        coil::scope around;
        child_handle<bool> joined = around.spawn(s.join(1h));
        EXPECT_TRUE(co_await joined);
        co_await around.join();
    };
    ctx_.run(main());
}

} // namespace
