// Eager operations that are dropped, never awaited, awaited elsewhere, or in flight when the
// context stops.

#include "io/support.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::listener;
using coil_test::manual;
using coil_test::pipe_pair;
using coil_test::run_on;
using coil_test::socket_pair;

namespace {

class EagerLife : public ::testing::Test {};

using any_eager = eager_operation<operation::element_type>;

TEST_F(EagerLife, G2_DroppedInFlight_NoByteWrittenAfterwards) {
    const pipe_pair p;
    const socket_pair s;
    std::array<char, 64> memory{};
    auto main = [](const pipe_pair& pipe, const socket_pair& pair, auto& m) -> task<> {
        {
            const auto read = eager(io::read(pipe.in, {m.data(), 16}));
            const auto recv = eager(io::recv(pair.a, {m.data() + 16, 16}));
            const auto limited = eager(timeout(io::read(pipe.in, {m.data() + 32, 16}), 1h));
            const auto chain = eager(io::nop() && io::recv(pair.a, {m.data() + 48, 16}));
            co_await io::nop();
        }
        pipe.put("secret");
        EXPECT_EQ(::send(pair.b, "secret", 6, 0), 6);
        co_await sleep_for(2ms);
    };
    coil::run(main(p, s, memory));
    EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](char c) { return c == 0; }));
    EXPECT_EQ(::recv(s.a, memory.data(), 6, MSG_DONTWAIT), 6);
}

TEST_F(EagerLife, G2_DroppedBeforeItWasSubmitted) {
    const pipe_pair p;
    std::array<char, 8> memory{};
    auto main = [](const pipe_pair& pipe, auto& m) -> task<> {
        {
            const auto dropped = eager(io::read(pipe.in, m));
        }
        pipe.put("secret");
        co_await sleep_for(1ms);
        EXPECT_EQ(m[0], 0);
    };
    coil::run(main(p, memory));
}

TEST_F(EagerLife, G4_DescriptorsOfDroppedOperationsAreClosed) {
    const listener l;
    const auto client = l.connect();
    auto main = [](const listener& server) -> task<> {
        for (const bool complete : {false, true}) {
            const auto file = eager(io::openat(AT_FDCWD, "/", O_RDONLY | O_CLOEXEC));
            const auto socket = eager(io::socket(AF_INET, SOCK_STREAM));
            const auto peer = eager(timeout(io::accept(server.socket), 1h));
            const auto middle = eager(io::openat(AT_FDCWD, "/", O_RDONLY) && io::nop());
            if (complete) {
                co_await io::nop();
                co_await sleep_for(1ms);
                EXPECT_TRUE(file.is_complete() && socket.is_complete());
            }
        }
    };
    coil::run(main(l)); // leaked descriptors are found at the end of the test
}

/// Awaits an operation that another coroutine started.
template <class Eager>
manual watch(Eager& pending, std::optional<int>& result) {
    result = co_await pending;
}

TEST_F(EagerLife, SurvivesTheCoroutineThatAwaitsIt_AnotherTakesOver) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char c = 0;
        auto pending = eager(io::read(pipe.in, {&c, 1}));
        std::optional<int> unused;
        {
            const manual first = watch(pending, unused);
            first.start();
            co_await io::nop();
        }
        EXPECT_FALSE(pending.is_complete()); // only its awaiter was destroyed
        std::optional<int> result;
        const manual second = watch(pending, result);
        second.start();
        pipe.put("x");
        while (!result) {
            co_await sleep_for(1ms);
        }
        EXPECT_EQ(result, 1);
        EXPECT_EQ(c, 'x');
        EXPECT_EQ(unused, std::nullopt);
    };
    coil::run(main(p));
}

TEST_F(EagerLife, KeepsItsResultIfItsAwaiterIsDestroyedBeforeItResumes) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char c = 0;
        auto pending = eager(io::read(pipe.in, {&c, 1}));
        std::optional<int> result;
        manual first = watch(pending, result);
        first.start();
        co_await io::nop();
        pipe.put("x");
        // An earlier completion of the same batch makes this coroutine ready.
        auto destroyer = [](auto& op, manual& m) -> task<> {
            while (!op.is_complete()) {
                co_await yield();
            }
            m.destroy();
        };
        co_await destroyer(pending, first);
        const int late = result ? *result : co_await pending;
        EXPECT_EQ(late, 1);
    };
    coil::run(main(p));
}

TEST_F(EagerLife, G1_DestroyedWhileAwaited_TheAwaiterResumes) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char c = 0;
        std::optional<any_eager> pending(std::in_place, io::read(pipe.in, {&c, 1}));
        auto waits = [](any_eager& op) -> task<int> { co_return co_await op; };
        auto h = spawn(waits(*pending));
        co_await io::nop();
        pending.reset();
        EXPECT_EQ(co_await h, -ECANCELED);

        // The operation is complete; its awaiter is ready but has not resumed yet.
        pending.emplace(io::nop());
        auto ready = spawn(waits(*pending));
        co_await yield();
        while (pending && !pending->is_complete()) {
            co_await yield();
        }
        const bool resumed = ready.done();
        pending.reset();
        EXPECT_EQ(co_await ready, resumed ? 0 : -ECANCELED);
    };
    coil::run(main(p));
}

TEST_F(EagerLife, G5_AtStop_InEveryOrderOfFrames) {
    const pipe_pair p;
    for (const bool owner_first : {false, true}) {
        io_context ctx;
        auto waits = [](std::shared_ptr<any_eager*> op) -> task<> {
            while (*op == nullptr) {
                co_await yield();
            }
            co_await **op;
        };
        auto owns = [](std::shared_ptr<any_eager*> op, int fd) -> task<> {
            char c = 0;
            any_eager pending(io::read(fd, {&c, 1}));
            *op = &pending;
            co_await sleep_for(3ms);
            this_context().stop();
            co_await sleep_for(1h);
        };
        auto shared = std::make_shared<any_eager*>(nullptr);
        if (owner_first) {
            ctx.co_spawn(owns(shared, p.in));
            ctx.co_spawn(waits(shared));
        } else {
            ctx.co_spawn(waits(shared));
            ctx.co_spawn(owns(shared, p.in));
        }
        ctx.run();
    }
}

TEST_F(EagerLife, G5_OutsideOfAnyFrameAtStop) {
    const pipe_pair p;
    std::array<char, 1> memory{};
    auto living = std::make_unique<std::list<any_eager>>();
    auto limited =
        std::make_unique<std::optional<decltype(eager(timeout(std::declval<operation>(), 1h)))>>();
    auto chain =
        std::make_unique<std::optional<decltype(eager(io::nop() && std::declval<operation>()))>>();
    auto quick =
        std::make_unique<std::optional<decltype(eager(timeout(std::declval<operation>(), 1h)))>>();
    auto context =
        std::make_unique<io_context>(coil_test::with([](auto& o) { o.max_in_flight = 3'500; }));
    auto main = [&]() -> task<> {
        for (int i = 0; i < 4'000; ++i) { // more than one cancellation request is needed
            living->emplace_back(io::read(p.in, memory));
        }
        limited->emplace(timeout(io::read(p.in, memory), 1h));
        chain->emplace(io::nop() && io::read(p.in, memory));
        quick->emplace(timeout(io::nop(), 1h)); // its timer is still armed
        co_await sleep_for(1ms);
        this_context().stop();
        co_await sleep_for(1h);
    };
    context->co_spawn(main());
    context->run();
    for (const any_eager& each : *living) {
        ASSERT_TRUE(each.is_complete());
    }
    EXPECT_TRUE((*limited)->is_complete() && (*chain)->is_complete());
    p.put("x");
    context.reset();
    living.reset(); // all are complete, so the context may be gone
    limited.reset();
    chain.reset();
    quick.reset();
    EXPECT_EQ(memory[0], 0);
}

TEST_F(EagerLife, G5_IsWorkOfTheContextAndEndsWithinTheRun) {
    const pipe_pair p;
    std::array<char, 1> c{};
    std::optional<any_eager> pending;
    io_context ctx;
    auto main = [&]() -> task<> {
        pending.emplace(io::read(p.in, c));
        auto later = eager(io::nop());
        co_await later;
    };
    ctx.co_spawn(main());
    std::thread writer([&] {
        std::this_thread::sleep_for(3ms);
        p.put("x");
    });
    ctx.run(); // returns when `pending` is complete, although no task is left
    writer.join();
    EXPECT_TRUE(pending->is_complete());
    EXPECT_EQ(c[0], 'x');
}

TEST_F(EagerLife, MisusesEndTheProgramWithAMessage) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "death tests fork, which sanitizers do not support";
    }
    auto twice = [] {
        auto main = []() -> task<> {
            auto op = eager(io::nop());
            co_await op;
            co_await op;
        };
        coil::run(main());
    };
    EXPECT_DEATH(twice(), "awaited after its result was taken");
    auto two = [] {
        const pipe_pair p;
        auto main = [](int fd) -> task<> {
            char c;
            auto op = eager(io::read(fd, {&c, 1}));
            std::optional<int> a;
            std::optional<int> b;
            const manual first = watch(op, a);
            const manual second = watch(op, b);
            first.start();
            second.start();
            co_await yield();
        };
        coil::run(main(p.in));
    };
    EXPECT_DEATH(two(), "two coroutines await one eager operation");
    auto elsewhere = [] {
        const pipe_pair p;
        auto main = [](int fd) -> task<> {
            char c;
            auto op = eager(io::read(fd, {&c, 1}));
            std::thread([&op] { op.cancel(); }).join();
            co_await op;
        };
        coil::run(main(p.in));
    };
    EXPECT_DEATH(elsewhere(), "cancelled on a thread other than");
}

} // namespace
