// Waits in nested combinators: if a wait has received something and its result is discarded, the
// primitive keeps it or gives it to the next waiter, however late that is decided.

#include "sync/scenarios.hpp"

using namespace coil;
using namespace std::chrono_literals;

namespace {

using combined_scenarios = ::testing::Types<
    sync_test::mutex_scenario, sync_test::guard_scenario, sync_test::semaphore_scenario,
    sync_test::auto_event_scenario, sync_test::event_scenario, sync_test::event_value_scenario,
    sync_test::latch_scenario, sync_test::wait_group_scenario, sync_test::barrier_scenario,
    sync_test::writer_scenario, sync_test::reader_scenario, sync_test::recv_scenario<0>,
    sync_test::recv_scenario<1>, sync_test::recv_scenario<1000>, sync_test::closed_recv_scenario,
    sync_test::send_scenario, sync_test::oneshot_scenario, sync_test::broadcast_scenario>;

template <class S>
class Combined : public ::testing::Test {};
TYPED_TEST_SUITE(Combined, combined_scenarios);

task<> some_turns(int n) {
    for (int i = 0; i < n; ++i) {
        co_await yield();
    }
}

/// Whether the await of this scenario is tested here, as one of each kind: without a result, moving
/// a value out, taking something, ending with an exception. The other primitives differ only in
/// what they wait for, and each combination is expensive to compile.
template <class S>
constexpr bool stands_for_others =
    std::is_same_v<S, sync_test::semaphore_scenario> ||
    std::is_same_v<S, sync_test::guard_scenario> ||
    std::is_same_v<S, sync_test::recv_scenario<1>> || std::is_same_v<S, sync_test::send_scenario>;

/// Calls `f` with a factory of waits, for each way to combine them.
template <class S, class F>
void in_each_combination(F f) {
    constinit static event* never = nullptr;
    event set_by_nobody;
    never = &set_by_nobody;
    const auto step = [&f](const char* name, auto make) {
        SCOPED_TRACE(name);
        f(make);
    };
    step("timeout", [](S& s) { return timeout(s.wait(), 24h); });
    if constexpr (stands_for_others<S>) {
        step("when_any", [](S& s) { return when_any(s.wait(), never->wait()); });
        step("timeout of when_any of timeout",
             [](S& s) { return timeout(when_any(never->wait(), timeout(s.wait(), 24h)), 24h); });
        step("when_all of shield of when_any",
             [](S& s) { return when_all(shield(when_any(s.wait(), never->wait()))); });
    }
}

TYPED_TEST(Combined, G4_NothingIsLostWhereAnotherWins) {
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
TYPED_TEST(Combined, G4_NothingIsLostIfAnotherWinsBetweenTheInnerAndTheOuterEnd) {
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

TYPED_TEST(Combined, G12_NothingIsLostWhereAnotherThrows) {
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

template <class A>
coil_test::manual awaits_to_be_destroyed(A awaitable, bool& got) {
    static_cast<void>(co_await std::move(awaitable));
    got = true;
}

TYPED_TEST(Combined, G5_NothingIsLostWhereTheFrameIsDestroyed) {
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

TYPED_TEST(Combined, G5_NothingIsLostWhereTheContextIsStopped) {
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
TYPED_TEST(Combined, G3_AStopDoesNotUndoWhatHasEnded) {
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

TYPED_TEST(Combined, TheWinnersResultIsReturned) {
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

task<> fails_in_a_moment() {
    co_await yield();
    throw 5;
}

/// Everything that the children await is available at once.
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
