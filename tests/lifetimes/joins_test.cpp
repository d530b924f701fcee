// Awaits of a scope, a supervisor or a task_group that are children of a combination. The
// awaitables outlive the combination when their frame is destroyed.

#include "lifetimes/support.hpp"

#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace lifetime_test;

namespace {

using waiting = task<> (*)(std::atomic<int>& alive, std::binary_semaphore& begun);

constexpr auto long_time = std::chrono::hours(1);

/// An awaiter of another library: its callback is registered while it waits.
class foreign_wait {
public:
    foreign_wait() = default;
    foreign_wait(foreign_wait&&) noexcept {} // moved only before it is awaited
    foreign_wait& operator=(foreign_wait&&) = delete;
    ~foreign_wait() = default;

    static bool await_ready() noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) {
        waiter_ = waiter;
        callback_.emplace(coil::detail::stop_token_of(waiter), resume_now{this});
    }
    void await_resume() noexcept { callback_.reset(); }

private:
    struct resume_now {
        foreign_wait* self;
        void operator()() const noexcept {
            this_context().post([at = self->waiter_] { at(); });
        }
    };

    std::coroutine_handle<> waiter_;
    std::optional<inplace_stop_callback<resume_now>> callback_;
};

task<> never_starts() { co_await sleep_for(long_time); }

constexpr std::pair<const char*, waiting> kinds[] = {
    {"when_any(group.next())",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         task_group<> g;
         g.spawn(sleeps_for_ever(alive, begun));
         co_await when_any(g.next(), sleep_for(long_time));
     }},
    {"when_all(group.next())",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         task_group<> g;
         g.spawn(sleeps_for_ever(alive, begun));
         co_await when_all(g.next(), sleep_for(long_time));
     }},
    {"when_any(group.next()) of a range",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         task_group<> g;
         g.spawn(sleeps_for_ever(alive, begun));
         std::vector<decltype(g.next())> all;
         all.push_back(g.next());
         co_await when_any(std::move(all));
     }},
    {"when_any(named group.next())",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         task_group<> g;
         g.spawn(sleeps_for_ever(alive, begun));
         auto next = g.next();
         co_await when_any(next, sleep_for(long_time));
     }},
    {"timeout(group.next())",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         task_group<> g;
         g.spawn(sleeps_for_ever(alive, begun));
         co_await timeout(g.next(), long_time);
     }},
    {"timeout(scope.join())",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         scope s;
         s.spawn(sleeps_for_ever(alive, begun));
         co_await timeout(s.join(), long_time);
     }},
    {"when_any(scope.join())",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         scope s;
         s.spawn(sleeps_for_ever(alive, begun));
         co_await when_any(s.join(), sleep_for(long_time));
     }},
    {"when_any(supervisor.join(grace))",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         supervisor s;
         co_await s.spawn(sleeps_for_ever(alive, begun));
         co_await when_any(s.join(long_time), sleep_for(long_time));
     }},
    {"when_any(named supervisor.spawn())",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         supervisor s{{.max_children = 1}};
         co_await s.spawn(sleeps_for_ever(alive, begun));
         auto second = s.spawn(never_starts());
         co_await when_any(second, sleep_for(long_time));
     }},
    {"when_any(named group.spawn())",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         task_group<> g{{.max_children = 1}};
         co_await g.spawn(sleeps_for_ever(alive, begun));
         auto second = g.spawn(never_starts());
         co_await when_any(second, sleep_for(long_time));
     }},
    {"when_any(an awaiter of another library)",
     [](std::atomic<int>& alive, std::binary_semaphore& begun) -> task<> {
         scope s;
         s.spawn(sleeps_for_ever(alive, begun));
         co_await when_any(foreign_wait(), sleep_for(long_time));
     }},
};

/// How the frame that waits ends.
enum class ending : std::uint8_t { scope_left, stopped, cancelled };

task<> leave(waiting wait, std::atomic<int>& alive, std::binary_semaphore& begun) {
    scope s;
    s.spawn(wait(alive, begun));
    co_await sleep_for(1ms);
}

task<> cancel(waiting wait, std::atomic<int>& alive, std::binary_semaphore& begun) {
    scope s;
    s.spawn(wait(alive, begun));
    co_await sleep_for(1ms);
    s.cancel();
    try {
        co_await s.join();
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
}

ISOLATED_TEST(Joins, G5_AFrameIsDestroyedWhileACombinationJoins) {
    for (const auto& [name, wait] : kinds) {
        for (const ending how : {ending::scope_left, ending::stopped, ending::cancelled}) {
            SCOPED_TRACE(name);
            std::atomic<int> alive = 0;
            std::binary_semaphore begun{0};
            io_context ctx;
            if (how == ending::stopped) {
                ctx.co_spawn(wait(alive, begun));
                std::thread stops([&] {
                    begun.acquire();
                    ctx.stop();
                });
                ctx.run();
                stops.join();
            } else {
                ctx.co_spawn((how == ending::cancelled ? cancel : leave)(wait, alive, begun));
                ctx.run();
            }
            EXPECT_EQ(alive, 0);
        }
    }
}

} // namespace
