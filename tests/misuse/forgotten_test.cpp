// Tasks that never run, and scopes, supervisors and groups that are not joined.

#include "support/printed.hpp"
#include "support/run.hpp"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace coil;
using namespace coil_test;
using namespace std::chrono_literals;

namespace forgotten {

task<> never_awaited() { co_return; }
task<> stored() { co_return; }
task<> in_a_vector() { co_return; }
task<> unneeded() { co_return; }
task<> sleeps() { co_await sleep_for(1h); }

constexpr const char* unrun = "coil: a task was destroyed and has never run: forgotten::";
constexpr const char* remedy = ".*\\. Did you forget to co_await or spawn it\\?\n";

// mistake 1: a task that is stored, and destroyed without having run
// shows: `a task was destroyed and has never run`, with its function
TEST(ForgottenTask, IsReportedWithItsFunction) {
    expect_printed(printed_by([] { [[maybe_unused]] const task<> t = never_awaited(); }),
                   std::string(unrun) + "never_awaited\\(\\)" + remedy);
}

TEST(ForgottenTask, InATask) {
    expect_printed(printed_by([] {
                       run([]() -> task<> {
                           [[maybe_unused]] const auto t = stored();
                           co_return;
                       }());
                   }),
                   std::string(unrun) + "stored\\(\\)" + remedy);
}

TEST(ForgottenTask, IsReportedOnceForEachFunction) {
    expect_printed(printed_by([] {
                       std::vector<task<>> all;
                       for (int i = 0; i < 10; ++i) {
                           all.push_back(in_a_vector());
                       }
                   }),
                   std::string(unrun) + "in_a_vector\\(\\)" + remedy);
}

task<> runs_it(task<> inner) { co_await std::move(inner); }
task<> fails_before(task<> inner) {
    if (std::string("x").size() == 1) {
        throw std::runtime_error("before it");
    }
    co_await std::move(inner);
}
task<> is_stopped_before(task<> inner) {
    [[maybe_unused]] const auto second = unneeded();
    static_cast<void>((co_await sleep_for(1h)).value()); // throws when it is stopped
    co_await std::move(inner);
}

TEST(ForgottenTask, NotIfSomethingElseEndsIt) {
    EXPECT_EQ(printed_by([] {
                  // an exception
                  EXPECT_THROW(run(fails_before(unneeded())), std::runtime_error);
                  EXPECT_THROW(
                      {
                          [[maybe_unused]] const auto t = unneeded();
                          throw std::runtime_error("before it");
                      },
                      std::runtime_error);
                  // the destruction of a suspended frame that holds the task
                  run([]() -> task<> {
                      // a child of a combination, stopped
                      EXPECT_THROW(co_await timeout(is_stopped_before(unneeded()), 1ms),
                                   std::system_error);
                      // the loser of a when_any()
                      static_cast<void>(co_await when_any(sleep_for(0s), runs_it(sleeps())));
                      // a spawned task, cancelled
                      auto all = spawn(is_stopped_before(unneeded()));
                      co_await yield();
                      all.cancel();
                      EXPECT_THROW(co_await std::move(all), std::system_error);
                  }());
                  // a shutdown
                  io_context ctx;
                  ctx.co_spawn(is_stopped_before(unneeded()));
                  ctx.co_spawn([](io_context& all) -> task<> {
                      [[maybe_unused]] const auto t = unneeded();
                      all.stop();
                      co_await sleep_for(1h);
                  }(ctx));
                  ctx.run();
              }),
              "");
}

TEST(ForgottenTask, NotIfItWasMovedAwaitedOrSpawned) {
    EXPECT_EQ(printed_by([] {
                  auto t = runs_it(unneeded());
                  auto moved = std::move(t);
                  run(std::move(moved));
                  run([]() -> task<> {
                      std::vector<task<>> all;
                      all.push_back(unneeded());
                      all.push_back(unneeded());
                      co_await when_all(std::move(all));
                      co_spawn(unneeded());
                      std::optional<task<>> maybe = unneeded();
                      co_await std::move(*maybe);
                  }());
              }),
              "");
}

TEST(ForgottenTask, NotIfItsContextNeverRuns) {
    EXPECT_EQ(printed_by([] {
                  io_context ctx;
                  ctx.co_spawn(unneeded());
              }),
              "");
}

constexpr const char* unjoined = "coil: a scope was left without co_await join\\(\\) while ";

// mistake 23: a scope ends while children run
// shows: `a scope was left without co_await join()`, with their number and the newest
TEST(UnjoinedScope, IsReportedWithTheNewestChild) {
    expect_printed(
        printed_by([] {
            run([]() -> task<> {
                scope s;
                s.spawn(sleeps());
                s.spawn(sleeps(), "watcher");
                co_await yield();
            }());
        }),
        std::string(unjoined) +
            "2 of its children had not ended, the newest of them 'watcher' in "
            "forgotten::sleeps\\(\\).*\\. They are destroyed\\. Join it, or cancel\\(\\) "
            "it first\\.\n");
}

TEST(UnjoinedScope, NotIfItIsEmptyJoinedOrCancelled) {
    EXPECT_EQ(printed_by([] {
                  run([]() -> task<> {
                      {
                          const scope empty;
                      }
                      {
                          scope joined;
                          joined.spawn(sleep_for(1ms));
                          co_await joined.join();
                      }
                      {
                          scope ended;
                          ended.spawn(unneeded());
                          co_await sleep_for(1ms);
                      }
                      {
                          scope cancelled;
                          cancelled.spawn(sleeps());
                          cancelled.cancel();
                      }
                  }());
              }),
              "");
}

task<> leaves_by_exception() {
    scope s;
    s.spawn(sleeps());
    co_await yield();
    throw std::runtime_error("out of it");
}
task<> waits_in_a_scope() {
    scope s;
    s.spawn(sleeps());
    co_await sleep_for(1h);
    co_await s.join();
}
task<> joins() {
    scope s;
    s.spawn(sleeps());
    co_await s.join();
}
task<> is_stopped_in_a_scope() {
    scope s(co_await this_task::stop_token());
    s.spawn(sleeps());
    if (co_await sleep_for(1h) != 0) {
        co_return; // the task was asked to stop, and so were the children
    }
    co_await s.join();
}

// mistake 23: an exception, a stop or a shutdown ends a scope
// shows: nothing: its children are destroyed with it
TEST(UnjoinedScope, NotIfSomethingElseEndsIt) {
    EXPECT_EQ(printed_by([] {
                  EXPECT_THROW(run(leaves_by_exception()), std::runtime_error);
                  run([]() -> task<> {
                      static_cast<void>(co_await when_any(sleep_for(1ms), joins()));
                      auto stopped = spawn(is_stopped_in_a_scope());
                      co_await yield();
                      stopped.cancel();
                      co_await std::move(stopped);
                  }());
                  io_context ctx;
                  ctx.co_spawn(waits_in_a_scope());
                  ctx.co_spawn(joins());
                  ctx.co_spawn(runs_it(waits_in_a_scope()));
                  ctx.co_spawn([](io_context& all) -> task<> {
                      co_await yield();
                      all.stop();
                  }(ctx));
                  ctx.run();
              }),
              "");
}

constexpr const char* newest_sleeps =
    "2 of its children had not ended, the newest of them 'watcher' in forgotten::sleeps\\(\\).*\\. "
    "They are destroyed\\. ";

// mistake 23: a supervisor ends while children run
// shows: `a supervisor was left without co_await join()`, with their number and the newest
TEST(UnjoinedSupervisor, IsReportedWithTheNewestChild) {
    expect_printed(printed_by([] {
                       run([]() -> task<> {
                           supervisor s;
                           s.spawn(sleeps());
                           s.spawn(sleeps(), "watcher");
                           co_await yield();
                       }());
                   }),
                   std::string("coil: a supervisor was left without co_await join\\(\\) while ") +
                       newest_sleeps + "Join it, or cancel\\(\\) it first\\.\n");
}

TEST(UnjoinedSupervisor, ThatHasOnlyQueuedChildrenIsReported) {
    expect_printed(
        printed_by([] {
            run([]() -> task<> {
                supervisor s{{.on_failure = {}, .max_children = 0}};
                s.spawn(unneeded());
                co_await yield();
            }());
        }),
        "coil: a supervisor was left without co_await join\\(\\) while 1 of its children "
        "had not ended\\. They are destroyed\\. .*\n");
}

// mistake 23: a task_group ends while children run
// shows: `a task_group was left before next() had returned all results`, with their number
TEST(UnfinishedTaskGroup, IsReportedWithTheNewestChild) {
    expect_printed(
        printed_by([] {
            run([]() -> task<> {
                task_group<> g;
                g.spawn(sleeps());
                g.spawn(sleeps(), "watcher");
                co_await yield();
            }());
        }),
        std::string(
            "coil: a task_group was left before next\\(\\) had returned all results while ") +
            newest_sleeps +
            "Await next\\(\\) until it returns nothing, or cancel\\(\\) it first\\.\n");
}

template <class Children>
task<> ends_them_all() {
    {
        const Children empty;
    }
    {
        Children ended;
        ended.spawn(unneeded());
        co_await sleep_for(1ms);
    }
    {
        Children cancelled;
        cancelled.spawn(sleeps());
        cancelled.cancel();
    }
}
template <class Children>
task<> throws_out_of() {
    Children left;
    left.spawn(sleeps());
    co_await yield();
    throw std::runtime_error("out of it");
}
template <class Children>
task<> is_shut_down_in() {
    Children left;
    left.spawn(sleeps());
    co_await sleep_for(1h);
}

template <class Children>
void expect_silence() {
    EXPECT_EQ(printed_by([] {
                  run(ends_them_all<Children>());
                  EXPECT_THROW(run(throws_out_of<Children>()), std::runtime_error);
                  io_context ctx;
                  ctx.co_spawn(is_shut_down_in<Children>());
                  ctx.co_spawn([](io_context& all) -> task<> {
                      co_await yield();
                      all.stop();
                  }(ctx));
                  ctx.run();
              }),
              "");
}

TEST(UnjoinedSupervisor, IsSilentIfItIsEmptyCancelledOrEndedBySomethingElse) {
    expect_silence<supervisor>();
}
TEST(UnfinishedTaskGroup, IsSilentIfItIsEmptyCancelledOrEndedBySomethingElse) {
    expect_silence<task_group<>>();
}

TEST(UnjoinedSupervisor, IsSilentAfterAJoin) {
    EXPECT_EQ(printed_by([] {
                  run([]() -> task<> {
                      supervisor s;
                      s.spawn(sleeps());
                      EXPECT_FALSE(co_await s.try_join_for(1ms));
                      EXPECT_TRUE(co_await s.join(1s));
                  }());
              }),
              "");
}

} // namespace forgotten
