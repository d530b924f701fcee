// Waits in nested combinations: what was given to a wait is passed on if another one fails.

#include "sync/combinations.hpp"

using namespace coil;
using namespace std::chrono_literals;
using sync_test::in_each_combination;
using sync_test::some_turns;

namespace {

template <class S>
class CombinedFailure : public ::testing::Test {};
TYPED_TEST_SUITE(CombinedFailure, sync_test::combined_scenarios);

TYPED_TEST(CombinedFailure, G12_NothingIsLostWhereAnotherThrows) {
    in_each_combination<TypeParam>([](auto make) {
        for (int later = 0; later < 4; ++later) {
            TypeParam s;
            s.prepare();
            event other;
            coil::run([](TypeParam& it, event& e, int n, auto m) -> task<> {
                auto throws = [](event& o) -> task<> {
                    co_await o.wait();
                    throw 5;
                };
                auto both = [throws](TypeParam& t, event& o, auto made) -> task<> {
                    co_await when_all(made(t), throws(o));
                };
                auto h = spawn(both(it, e, m));
                co_await some_turns(2);
                it.wake();
                co_await some_turns(n);
                e.set();
                int caught = 0;
                try {
                    co_await h;
                } catch (int thrown) {
                    caught = thrown;
                }
                EXPECT_EQ(caught, 5);
            }(s, other, later, make));
            s.check(false);
        }
    });
}

task<> fails_in_a_moment() {
    co_await yield();
    throw 5;
}

/// Everything that the children await is available immediately.
TEST(CombinedAtOnce, G12_NothingIsLostIfAnotherThrows) {
    mutex m;
    mutex guarded;
    counting_semaphore<> s{1};
    channel<int> ch{4};
    broadcast<int> news{2};
    auto mine = news.subscribe();
    EXPECT_TRUE(ch.try_send(1));
    EXPECT_TRUE(ch.try_send(2));
    for (int i = 1; i <= 3; ++i) {
        EXPECT_TRUE(news.send(i)); // the receiver misses the first
    }
    EXPECT_THROW(coil::run([](auto& a, auto& b, auto& c, auto& d, auto& e) -> task<> {
                     co_await when_all(a.lock(), b.lock_guard(), c.acquire(), d.recv(),
                                       timeout(d.recv(), 24h), e.recv(), fails_in_a_moment());
                 }(m, guarded, s, ch, mine)),
                 int);
    EXPECT_TRUE(m.try_lock());
    EXPECT_TRUE(guarded.try_lock());
    EXPECT_TRUE(s.try_acquire());
    EXPECT_EQ(ch.try_recv(), 1);
    EXPECT_EQ(ch.try_recv(), 2);
    EXPECT_EQ(mine.lagged(), 0U);
    EXPECT_EQ(mine.try_recv(), 2);
    EXPECT_EQ(mine.lagged(), 1U);
    EXPECT_EQ(mine.try_recv(), 3);
}

TEST(CombinedSend, G12_AClosedChannelIsReported) {
    for (const bool limited : {false, true}) {
        std::vector<std::error_code> heard;
        io_context ctx(coil_test::with([&heard](io_context_options& options) {
            options.on_unhandled_exception = [&heard](std::exception_ptr error) {
                try {
                    std::rethrow_exception(error);
                } catch (const std::system_error& e) {
                    heard.push_back(e.code());
                }
            };
        }));
        channel<int> ch;
        event other;
        coil_test::run_on(ctx, [](channel<int>& c, event& e, bool limits) -> task<> {
            auto racing = [](channel<int>& it, event& o, bool l) -> task<> {
                if (l) {
                    co_await when_any(o.wait(), timeout(it.send(1), 24h));
                } else {
                    co_await when_any(o.wait(), it.send(1));
                }
            };
            auto h = spawn(racing(c, e, limits));
            co_await some_turns(2);
            e.set();
            c.close();
            co_await h;
        }(ch, other, limited));
        ASSERT_EQ(heard.size(), 1U);
        EXPECT_EQ(heard.front(), std::errc::broken_pipe);
    }
}

} // namespace
