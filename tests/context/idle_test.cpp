// An idle context uses no CPU with any policy, and every policy does the same work.

#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

struct named_policy {
    const char* name;
    idle_policy policy;
};

std::ostream& operator<<(std::ostream& out, const named_policy& p) { return out << p.name; }

const std::vector<named_policy> policies{
    {"park", idle_policy::park()},
    {"spin", idle_policy::spin(50us)},
    {"long_spin", idle_policy::spin(2ms)},
    {"batch", idle_policy::batch(16, 100us)},
    {"long_batch", idle_policy::batch(1000, 50ms)},
};

TEST(BatchPolicy, ABatchOfNothingOrOfNoTimeParks) {
    EXPECT_EQ(idle_policy::batch(0, 10us).what(), idle_policy::kind::park);
    EXPECT_EQ(idle_policy::batch(1, 10us).what(), idle_policy::kind::park);
    EXPECT_EQ(idle_policy::batch(8, 0us).what(), idle_policy::kind::park);
    EXPECT_EQ(idle_policy::batch(8, -1us).what(), idle_policy::kind::park);
    EXPECT_EQ(idle_policy::batch(8, std::chrono::hours(2)).limit(), 1min);
}

TEST(BatchPolicy, ALoneOperationIsNotDelayed) {
    io_context ctx(
        coil_test::with([](auto& o) { o.idle = idle_policy::batch(2, std::chrono::minutes(1)); }));
    const coil_test::socket_pair s;
    auto echo = [](const coil_test::socket_pair& both) -> task<int> {
        int sum = 0;
        for (int i = 0; i < 3; ++i) {
            char c = 'x';
            const int sent = co_await (io::send(both.a, {&c, 1}) && io::recv(both.b, {&c, 1}));
            co_await io::nop();
            sum += sent;
        }
        co_return sum;
    };
    const auto begin = steady_clock::now();
    EXPECT_EQ(coil_test::run_on(ctx, echo(s)), 3);
    EXPECT_LT(steady_clock::now() - begin, 30s);
}

class IdlePolicy : public ::testing::Test, public testing::WithParamInterface<named_policy> {
protected:
    io_context ctx_{coil_test::with([](auto& o) { o.idle = GetParam().policy; })};
};

TEST_P(IdlePolicy, CarriesAPingPong) {
    const coil_test::socket_pair s;
    auto echo = [](int fd) -> task<> {
        char c;
        while (co_await io::recv(fd, {&c, 1}) == 1) {
            co_await io::send(fd, {&c, 1});
        }
    };
    auto ping = [](int fd) -> task<int> {
        int sum = 0;
        for (int i = 0; i < 6; ++i) {
            char c = 'x';
            sum += co_await io::send(fd, {&c, 1});
            sum += co_await io::recv(fd, {&c, 1});
        }
        co_await io::shutdown(fd, SHUT_RDWR);
        co_return sum;
    };
    ctx_.co_spawn(echo(s.a));
    EXPECT_EQ(coil_test::run_on(ctx_, ping(s.b)), 12);
}

TEST_P(IdlePolicy, SleepsAreNeitherEarlyNorLate) {
    auto nap = []() -> task<std::chrono::nanoseconds> {
        std::chrono::nanoseconds least = 1h;
        // the minimum of several runs, because the machine may be busy
        for (int i = 0; i < 5; ++i) {
            const auto begin = steady_clock::now();
            co_await sleep_for(1ms);
            const auto took = steady_clock::now() - begin;
            EXPECT_GE(took, 1ms);
            least = std::min<std::chrono::nanoseconds>(least, took);
        }
        co_return least;
    };
    const auto least = coil_test::run_on(ctx_, nap());
    EXPECT_TRUE(least < 5ms || coil_test::under_faults()) << least.count() << " ns";
}

TEST_P(IdlePolicy, AnotherThreadWakesIt) {
    const pid_t runner = ::gettid();
    auto nothing = []() -> task<> { co_return; };
    auto forever = []() -> task<> { co_await sleep_for(24h); };
    ctx_.co_spawn(forever());
    std::thread other([&] {
        coil_test::wait_until_asleep(runner);
        ctx_.spawn(nothing()).get();
        coil_test::wait_until_asleep(runner);
        ctx_.stop();
    });
    ctx_.run();
    other.join();
}

INSTANTIATE_TEST_SUITE_P(Every, IdlePolicy, testing::ValuesIn(policies),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Idle, G8_ABackendThatAlwaysReportsWorkDoesNotKeepAContextAwake) {
    auto script = std::make_shared<coil_test::scripted_backend::script>();
    script->stuck_flags = coil::uring::sq_flag::taskrun;
    std::uint64_t read = 0;
    script->on_submit = [&](const coil::uring::sqe& entry) { read = entry.user_data; };
    script->on_wait = [&] { script->post(read, 1); };
    io_context_options options;
    options.idle = idle_policy::spin(50us);
    options.make_backend = coil_test::scripted_backend::factory(script);
    io_context context(options);
    auto reads = []() -> task<int> {
        char c;
        co_return co_await io::read(0, {&c, 1});
    };
    EXPECT_EQ(coil_test::run_on(context, reads()), 1);
    EXPECT_EQ(context.metrics().parks, 1U);
}

/// Performs operations one after the other, each of which takes 80 µs of the script's time, and
/// `wake_up` more if the context sleeps. Each reading of the clock takes at least `cpu` of CPU
/// time, which is real, while the other times are the script's.
context_metrics after_many_short_waits(std::chrono::nanoseconds wake_up,
                                       std::chrono::nanoseconds cpu = 0ns) {
    auto script = std::make_shared<coil_test::scripted_backend::script>();
    std::uint64_t pending = 0;
    std::chrono::nanoseconds due{};
    const auto complete = [&] {
        script->post(std::exchange(pending, 0), 0);
        script->stuck_flags = coil::uring::sq_flag::taskrun; // a spin sees it
    };
    script->on_submit = [&](const coil::uring::sqe& entry) {
        if (entry.opcode == static_cast<std::uint8_t>(coil::uring::opcode::nop)) {
            pending = entry.user_data;
            due = script->now + 80us;
            script->stuck_flags = 0;
        }
    };
    script->on_now = [&] {
        script->now += 4us;
        const auto begin = steady_clock::now();
        while (steady_clock::now() - begin < cpu) {
        }
        if (pending != 0 && script->now >= due) {
            complete();
        }
    };
    script->on_wait = [&] {
        if (pending != 0) {
            script->now = due + wake_up;
            complete();
        }
    };
    io_context_options options;
    options.idle = idle_policy::spin(200us);
    options.make_backend = coil_test::scripted_backend::factory(script);
    io_context context(options);
    auto waits = []() -> task<> {
        for (int i = 0; i < 20'000; ++i) {
            co_await io::nop();
        }
    };
    coil_test::run_on(context, waits());
    return context.metrics();
}

TEST(Idle, KeepsSpinningIfSleepingWouldDelayTheWork) {
    const context_metrics m = after_many_short_waits(110us);
    EXPECT_GE(m.spin_experiments, 3U);
    EXPECT_EQ(m.spins_suppressed, 0U);
    EXPECT_GT(m.spins, 10 * m.parks);
}

/// The sleeps of an experiment are then longer than a spin may be.
TEST(Idle, KeepsSpinningIfWakingUpTakesLongerThanTheWait) {
    const context_metrics m = after_many_short_waits(140us);
    EXPECT_GE(m.spin_experiments, 3U);
    EXPECT_EQ(m.spins_suppressed, 0U);
    EXPECT_GT(m.spins, 10 * m.parks);
}

TEST(Idle, StopsSpinningIfItOnlyTakesCpuTime) {
    const context_metrics m = after_many_short_waits(0us, 1us);
    EXPECT_GE(m.spin_experiments, 3U);
    EXPECT_EQ(m.spins_suppressed, 1U);
    EXPECT_GT(m.parks, m.spins);
    EXPECT_NE(to_string(m).find("(spinning does not pay)"), std::string::npos);
}

/// Many clients: a sleep takes 30 µs, whether it waits for one completion or for several.
struct many_waits {
    static constexpr unsigned clients = 12;

    explicit many_waits(std::uint32_t features) {
        script->features |= features;
        script->on_submit = [this](const coil::uring::sqe& entry) {
            if (entry.opcode == static_cast<std::uint8_t>(coil::uring::opcode::nop)) {
                pending.push_back(entry.user_data);
            }
        };
        script->on_now = [this] { script->now += 1us; };
        script->on_wait = [this] { complete(1); };
        script->on_batch = [this](unsigned min_complete, std::chrono::microseconds min_wait) {
            most_asked_for = std::max(most_asked_for, min_complete);
            EXPECT_EQ(min_wait, 20us);
            complete(min_complete);
        };
        io_context_options options;
        options.idle = idle_policy::spin(50us);
        options.make_backend = coil_test::scripted_backend::factory(script);
        io_context context(options);
        auto waits = []() -> task<> {
            for (int i = 0; i < 5'000; ++i) {
                co_await io::nop();
            }
        };
        for (unsigned i = 0; i < clients; ++i) {
            context.co_spawn(waits());
        }
        context.run();
        metrics = context.metrics();
    }

    void complete(unsigned most) {
        script->now += 30us;
        for (; most > 0 && !pending.empty(); --most) {
            script->post(pending.front(), 0);
            pending.pop_front();
        }
    }

    std::shared_ptr<coil_test::scripted_backend::script> script =
        std::make_shared<coil_test::scripted_backend::script>();
    std::deque<std::uint64_t> pending;
    unsigned most_asked_for = 0;
    context_metrics metrics;
};

TEST(Idle, BatchesSleepsIfThatGetsMoreDone) {
    const many_waits w(coil::uring::feature::min_timeout);
    EXPECT_GE(w.metrics.spin_experiments, 2U);
    EXPECT_EQ(w.metrics.sleeps_batched, 1U);
    EXPECT_GT(w.most_asked_for, 1U);
    EXPECT_LE(w.most_asked_for, many_waits::clients + 1); // and the read of the wake-up descriptor
    EXPECT_NE(to_string(w.metrics).find("(batched sleeps pay)"), std::string::npos);
}

TEST(Idle, AKernelWithoutMinWaitGetsNoBatches) {
    const many_waits w(0);
    EXPECT_GE(w.metrics.spin_experiments, 2U);
    EXPECT_EQ(w.metrics.sleeps_batched, 0U);
    EXPECT_EQ(w.most_asked_for, 0U);
}

TEST(Idle, G8_WaitingUsesNoCpuTimeWithAnyPolicy) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitizers have threads and costs of their own";
    }
    const coil_test::pipe_pair p;
    auto reads = [](int fd) -> task<> {
        char c;
        co_await io::read(fd, {&c, 1});
    };
    auto sleeps = [](std::chrono::hours d) -> task<> { co_await sleep_for(d); };
    auto limited = [](int fd) -> task<> {
        char c;
        co_await timeout(io::read(fd, {&c, 1}), 100h);
    };
    auto joins = [](task<> work) -> task<> { co_await coil::spawn(std::move(work)); };
    std::vector<std::unique_ptr<io_context>> contexts;
    for (const auto& each : policies) {
        contexts.push_back(
            std::make_unique<io_context>(coil_test::with([&](auto& o) { o.idle = each.policy; })));
        io_context& ctx = *contexts.back();
        ctx.co_spawn(reads(p.in));
        ctx.co_spawn(sleeps(1h));
        ctx.co_spawn(sleeps(10'000h));
        ctx.co_spawn(limited(p.in));
        ctx.co_spawn(joins(sleeps(24h)));
        ctx.start();
    }
    contexts.push_back(std::make_unique<io_context>()); // only a timer: nothing in flight
    contexts.back()->co_spawn(sleeps(5h));
    contexts.back()->start();
    std::this_thread::sleep_for(100ms);
    auto looks = [&] {
        std::uint64_t all = 0;
        for (const auto& ctx : contexts) {
            const auto m = ctx->metrics();
            all += m.enters + m.spins;
        }
        return all;
    };
    const auto before = looks();
    EXPECT_LE(coil_test::least_cpu_time(4, 250ms), 500us); // of six contexts together
    EXPECT_EQ(looks(), before);
    for (auto& ctx : contexts) {
        ctx->stop();
        ctx->join();
    }
}

} // namespace
