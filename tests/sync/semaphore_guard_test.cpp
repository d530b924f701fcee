// counting_semaphore::guard.

#include "sync/support.hpp"

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using permit = counting_semaphore<>::guard;

static_assert(!std::is_copy_constructible_v<permit>);
static_assert(std::is_nothrow_move_constructible_v<permit>);

int free_permits(counting_semaphore<>& s) {
    int n = 0;
    while (s.try_acquire()) {
        ++n;
    }
    s.release(n);
    return n;
}

TEST(SemaphoreGuard, ReleasesAtTheEndOfItsBlock) {
    counting_semaphore<> s(2);
    coil::run([](counting_semaphore<>& slots) -> task<> {
        {
            const auto one = co_await slots.acquire_guard();
            EXPECT_TRUE(one.owns_permit());
            EXPECT_EQ(free_permits(slots), 1);
        }
        EXPECT_EQ(free_permits(slots), 2);
        try {
            const auto one = co_await slots.acquire_guard();
            throw std::runtime_error("failed");
        } catch (const std::runtime_error&) {
            EXPECT_EQ(free_permits(slots), 2);
        }
    }(s));
}

TEST(SemaphoreGuard, IsMoved) {
    counting_semaphore<> s(2);
    coil::run([](counting_semaphore<>& slots) -> task<> {
        auto one = co_await slots.acquire_guard();
        auto two = std::move(one);
        EXPECT_FALSE(one); // NOLINT(bugprone-use-after-move)
        EXPECT_TRUE(two);
        EXPECT_EQ(free_permits(slots), 1);
        two = co_await slots.acquire_guard(); // releases the first one afterwards
        EXPECT_EQ(free_permits(slots), 1);
        two = permit();
        EXPECT_EQ(free_permits(slots), 2);
    }(s));
    EXPECT_EQ(free_permits(s), 2);
}

TEST(SemaphoreGuard, IsReleasedEarly) {
    counting_semaphore<> s(1);
    coil::run([](counting_semaphore<>& slots) -> task<> {
        auto one = co_await slots.acquire_guard();
        one.release();
        EXPECT_FALSE(one);
        EXPECT_EQ(free_permits(slots), 1);
        one.release(); // no effect
        EXPECT_EQ(free_permits(slots), 1);
    }(s));
    EXPECT_EQ(free_permits(s), 1);
}

TEST(SemaphoreGuard, AdoptsAndForgets) {
    counting_semaphore<> s(1);
    ASSERT_TRUE(s.try_acquire());
    {
        permit adopted(s);
        EXPECT_EQ(adopted.forget(), &s);
    }
    EXPECT_EQ(free_permits(s), 0);
    {
        const permit adopted(s);
    }
    EXPECT_EQ(free_permits(s), 1);
}

TEST(SemaphoreGuard, ACancelledWaitTakesNoPermit) {
    counting_semaphore<> s(1);
    coil::run([](counting_semaphore<>& slots) -> task<> {
        auto held = co_await slots.acquire_guard();
        bool thrown = false;
        try {
            const auto other = co_await timeout(slots.acquire_guard(), 1ms);
        } catch (const std::system_error& e) {
            thrown = true;
            EXPECT_EQ(e.code(), std::errc::timed_out);
        }
        EXPECT_TRUE(thrown);
        held.release();
        EXPECT_EQ(free_permits(slots), 1);
    }(s));
}

TEST(SemaphoreGuard, AStopAfterTheHandOverReturnsThePermit) {
    counting_semaphore<> s(1);
    coil::run([](counting_semaphore<>& slots) -> task<> {
        auto held = co_await slots.acquire_guard();
        inplace_stop_source source;
        auto waiter = spawn(
            [](counting_semaphore<>& mine) -> task<> {
                const auto one = co_await mine.acquire_guard();
                ADD_FAILURE() << "the stop request was ignored";
            }(slots),
            source.get_token());
        co_await yield();
        held.release(); // hands the permit over
        source.request_stop();
        EXPECT_THROW(co_await std::move(waiter), std::system_error);
        EXPECT_EQ(free_permits(slots), 1);
    }(s));
}

TEST(SemaphoreGuard, ADestroyedTaskReleasesItsPermit) {
    counting_semaphore<> s(1);
    {
        io_context ctx;
        ctx.co_spawn([](counting_semaphore<>& slots, io_context& own) -> task<> {
            const auto one = co_await slots.acquire_guard();
            own.stop();
            co_await sleep_for(10s);
        }(s, ctx));
        ctx.run();
        EXPECT_EQ(free_permits(s), 1);
    }
}

TEST(SemaphoreGuard, MayOutliveTheContext) {
    binary_semaphore s(1);
    std::optional<binary_semaphore::guard> kept;
    coil::run([](binary_semaphore& slots, std::optional<binary_semaphore::guard>& to) -> task<> {
        to = co_await slots.acquire_guard();
    }(s, kept));
    EXPECT_FALSE(s.try_acquire());
    kept.reset();
    EXPECT_TRUE(s.try_acquire());
}

} // namespace
