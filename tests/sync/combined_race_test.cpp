// Waits in nested combinations: what was given to a wait that has lost a race is passed on, however
// late that is decided.

#include "sync/combinations.hpp"

using namespace coil;
using namespace std::chrono_literals;
using sync_test::in_each_combination;
using sync_test::some_turns;

namespace {

template <class S>
class CombinedRace : public ::testing::Test {};
TYPED_TEST_SUITE(CombinedRace, sync_test::combined_scenarios);

TYPED_TEST(CombinedRace, G4_NothingIsLostWhereAnotherWins) {
    in_each_combination<TypeParam>([](auto make) {
        for (int later = 0; later < 4; ++later) {
            TypeParam s;
            s.prepare();
            event other;
            std::size_t winner = 2;
            coil::run([](TypeParam& it, event& e, std::size_t& out, int n, auto m) -> task<> {
                auto racing = [](TypeParam& t, event& o, std::size_t& w, auto made) -> task<> {
                    const auto first = co_await when_any(made(t), o.wait());
                    w = first.index;
                };
                auto h = spawn(racing(it, e, out, m));
                co_await some_turns(2);
                it.wake();
                co_await some_turns(n);
                e.set();
                co_await h;
            }(s, other, winner, later, make));
            ASSERT_LT(winner, 2U);
            s.check(winner == 0);
        }
    });
}

/// The inner await has ended with a result, but the other child of the outer one has won.
TYPED_TEST(CombinedRace, G4_NothingIsLostIfAnotherWinsBetweenTheInnerAndTheOuterEnd) {
    TypeParam s;
    s.prepare();
    event other;
    coil::run([](TypeParam& it, event& e) -> task<> {
        auto racing = [](TypeParam& t, event& o) -> task<std::size_t> {
            const auto first = co_await when_any(timeout(t.wait(), 24h), o.wait());
            co_return first.index;
        };
        auto h = spawn(racing(it, e));
        co_await some_turns(2);
        it.wake();
        e.set();
        EXPECT_EQ(co_await h, 1U);
    }(s, other));
    s.check(false);
}

TYPED_TEST(CombinedRace, TheWinnersResultIsReturned) {
    TypeParam s;
    s.prepare();
    coil::run([](TypeParam& it) -> task<> {
        auto racing = [](TypeParam& t) -> task<> {
            event never;
            auto first = co_await when_any(timeout(t.wait(), 24h), never.wait());
            EXPECT_EQ(first.index, 0U);
            if constexpr (sync_test::gives_nothing<TypeParam>) {
                t.got();
            } else {
                t.got(std::get<0>(std::move(first.value)));
            }
        };
        auto h = spawn(racing(it));
        co_await some_turns(2);
        it.wake();
        co_await h;
    }(s));
    s.check(true);
}

} // namespace
