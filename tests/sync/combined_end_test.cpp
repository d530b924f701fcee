// Waits in nested combinations: what was given to a wait is passed on if its frame is destroyed or
// its context is stopped.

#include "sync/combinations.hpp"

using namespace coil;
using namespace std::chrono_literals;
using sync_test::in_each_combination;
using sync_test::some_turns;

namespace {

template <class S>
class CombinedEnd : public ::testing::Test {};
TYPED_TEST_SUITE(CombinedEnd, sync_test::combined_scenarios);

template <class A>
coil_test::manual awaits_to_be_destroyed(A awaitable, bool& got) {
    static_cast<void>(co_await std::move(awaitable));
    got = true;
}

TYPED_TEST(CombinedEnd, G5_NothingIsLostWhereTheFrameIsDestroyed) {
    in_each_combination<TypeParam>([](auto make) {
        for (int later = 0; later < 9; ++later) {
            TypeParam s;
            s.prepare();
            bool got = false;
            coil::run([](TypeParam& it, bool& out, int n, auto m) -> task<> {
                const auto frame = awaits_to_be_destroyed(when_all(m(it)), out);
                frame.start();
                co_await yield();
                it.wake();
                co_await some_turns(n);
            }(s, got, later, make));
            if (later == 0) {
                EXPECT_FALSE(got);
            }
            if (later == 8) {
                EXPECT_TRUE(got);
            }
            s.check(got);
        }
    });
}

TYPED_TEST(CombinedEnd, G5_NothingIsLostWhereTheContextIsStopped) {
    in_each_combination<TypeParam>([](auto make) {
        for (int later = 0; later < 4; ++later) {
            TypeParam s;
            s.prepare();
            bool got = false;
            {
                io_context ctx;
                ctx.co_spawn([](TypeParam& it, bool& out, auto m) -> task<> {
                    static_cast<void>(co_await m(it));
                    out = true;
                }(s, got, make));
                ctx.co_spawn([](TypeParam& it, io_context& c, int n) -> task<> {
                    co_await some_turns(2);
                    it.wake();
                    co_await some_turns(n);
                    c.stop();
                }(s, ctx, later));
                ctx.run();
            }
            s.check(got);
        }
    });
}

/// A stop after all children have ended does not undo any of them.
TYPED_TEST(CombinedEnd, G3_AStopDoesNotUndoWhatHasEnded) {
    TypeParam a;
    TypeParam b;
    a.prepare();
    b.prepare();
    coil::run([](TypeParam& one, TypeParam& other) -> task<> {
        auto both = [](TypeParam& t, TypeParam& o) -> task<> {
            static_cast<void>(co_await when_all(t.wait(), o.wait()));
        };
        auto h = spawn(both(one, other));
        co_await some_turns(2);
        one.wake();
        other.wake();
        co_await yield(); // both children have ended, the await has not resumed
        h.cancel();
        co_await h;
    }(a, b));
    a.check(true);
    b.check(true);
}

} // namespace
