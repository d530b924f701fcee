// Results that arrive after their await has lost: the resources of temporaries are released, and
// named operations and handles keep their results for a later await.

#include "compose/combinations.hpp"

#include <memory>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>

using namespace coil;
using namespace compose_test;
using coil_test::open_descriptors;

namespace {

class LateResults : public ::testing::Test {
protected:
    listening_context ctx_;
};

auto opens() { return io::openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC); }

task<> wins() { co_await coil::yield(); }

/// Awaits `make()` in combinations in which it loses, or succeeds but its result is not used.
template <class Make>
task<> loses(Make make) {
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(co_await complaint_of([](Make m) -> task<> {
                      co_await when_all(m(), fails_later("no", 5ms));
                  }(make)),
                  "no");
        EXPECT_EQ(co_await complaint_of([](Make m) -> task<> {
                      co_await timeout(when_all(shield(m()), shield(sleep_for(3ms))), 1ms);
                  }(make)),
                  timed_out_text);
        const auto first = co_await when_any(wins(), shield(make()));
        if (first.index == 1) {
            const coil_test::descriptor won{static_cast<int>(std::get<1>(first.value))};
        }
    }
}

TEST_F(LateResults, G4_DescriptorsOfAChainWithAnUnusedResultAreClosed) {
    auto main = []() -> task<> {
        co_await loses([] { return opens(); });
        co_await loses([] { return timeout(opens(), 1s); });
        co_await loses([] { return io::nop() && opens(); });
        co_await loses([] { return opens() && opens(); });
        co_await loses([] { return hard_link(io::nop(), opens()); });
        co_await loses([] { return timeout(io::nop() && opens(), 1s); });
        co_await loses([] { return io::nop() && timeout(opens(), 1s); });
        co_await loses([] { return io::force_async(opens()); });
    };
    const auto before = open_descriptors();
    ctx_.run(main());
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_TRUE(ctx_.heard.empty());
}

template <class Op>
inline constexpr bool is_late = detail::deferred_result<detail::awaiter_of<Op>>;

TEST_F(LateResults, G4_EveryOperationKeepsItsResultForLater) {
    static_assert(is_late<decltype(opens())>);
    static_assert(is_late<decltype(opens() && opens())>);
    static_assert(is_late<decltype(timeout(opens() && opens(), 1s))>);
    static_assert(is_late<decltype(eager(opens()))&>);
    static_assert(is_late<decltype(eager(timeout(io::nop() && opens(), 1s)))&>);
    static_assert(is_late<decltype(io::accept_direct(0))>);
    static_assert(is_late<decltype(std::declval<io::accept_stream&>().next())>);
    static_assert(is_late<decltype(shield(opens()))>);
    static_assert(is_late<join_handle<int>&>);
}

/// `use` abandons what it awaits; the operation completes afterwards.
template <class Use>
task<> leaves_it(Use use) {
    for (int i = 0; i < 5; ++i) {
        auto opened = eager(opens());
        co_await use(opened);
        const coil_test::descriptor fd{static_cast<int>(co_await opened)};
        EXPECT_GE(fd, 0);
        auto unasked = eager(opens());
        co_await use(unasked);
    }
}

TEST_F(LateResults, G4_ANamedEagerOperationKeepsItsResult) {
    auto main = []() -> task<> {
        co_await leaves_it([](auto& e) -> task<> {
            EXPECT_EQ(co_await complaint_of([](auto& op) -> task<> {
                          co_await when_all(op, fails_later("no", 5ms));
                      }(e)),
                      "no");
        });
        co_await leaves_it([](auto& e) -> task<> {
            scope s;
            s.spawn(e);
            co_await s.join();
        });
        co_await leaves_it([](auto& e) -> task<> { co_await when_any(gives(1), shield(e)); });
        co_await leaves_it(
            [](auto& e) -> task<> { co_await when_any(gives(1), when_all(e, sleep_for(1ms))); });
        co_await leaves_it([](auto& e) -> task<> { co_await when_any(gives(1), when_any(e)); });
    };
    const auto before = open_descriptors();
    ctx_.run(main());
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(LateResults, G2_AnEagerOperationIsDestroyedBeforeItsResultIsTaken) {
    auto destroys = [](auto& e) -> task<> {
        co_await sleep_for(2ms);
        e.reset();
    };
    auto all = [](auto d) -> task<> {
        using nop = eager_operation<operation::element_type>;
        auto ended = std::make_unique<nop>(io::nop()); // completed when it is destroyed
        auto [result, _] = co_await when_all(*ended, d(ended));
        EXPECT_EQ(result, -ECANCELED);
        auto complete = std::make_unique<nop>(io::nop());
        co_await sleep_for(1ms);
        auto [now, __] = co_await when_all(*complete, d(complete));
        EXPECT_EQ(now, -ECANCELED);
    };
    ctx_.run(all(destroys));
}

TEST_F(LateResults, G4_ANamedJoinHandleKeepsItsResult) {
    auto main = []() -> task<> {
        auto early = spawn(gives(1));
        EXPECT_EQ(co_await complaint_of([](auto& h) -> task<> {
                      co_await when_all(h, fails_later("no", 2ms));
                  }(early)),
                  "no");
        EXPECT_EQ(co_await early, 1);
        int cancelled = 0;
        auto limited = spawn(waits(cancelled));
        EXPECT_EQ(
            co_await complaint_of([](auto& h) -> task<> { co_await timeout(h, 1ms); }(limited)),
            timed_out_text);
        EXPECT_EQ(co_await complaint_of([](auto& h) -> task<> { co_await h; }(limited)),
                  cancelled_text);
        auto shielded = spawn(gives_later(3, 2ms));
        co_await when_any(shield(shielded), timeout(1us));
        EXPECT_EQ(co_await shielded, 3);
        auto nested = spawn(gives_later(4, 1ms));
        co_await when_any(gives(1), when_all(shield(nested)));
        EXPECT_EQ(co_await nested, 4);
        auto failed = spawn(fails_later("kept", 1ms));
        co_await when_any(gives(1), shield(failed));
        EXPECT_EQ(co_await complaint_of([](auto& h) -> task<> { co_await h; }(failed)), "kept");
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

/// Whether the task of a handle is asked to stop when the task that awaits `how(handle)` is.
template <class How>
task<bool> passes_a_stop_on(How how) {
    int cancelled = 0;
    auto joined = spawn(obeys(cancelled));
    auto joins = spawn(how(joined));
    co_await sleep_for(1ms);
    joins.cancel();
    co_await sleep_for(1ms);
    const bool passed_on = cancelled == 1;
    joined.cancel();
    try {
        co_await joins;
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
    EXPECT_EQ(cancelled, 1);
    co_return passed_on;
}

TEST_F(LateResults, G3_AHandlePassesAStopRequestOnInACombinationOnly) {
    using handle = join_handle<void>;
    auto main = []() -> task<> {
        EXPECT_FALSE(co_await passes_a_stop_on([](handle& h) -> task<> { co_await h; }));
        EXPECT_FALSE(co_await passes_a_stop_on(
            [](handle& h) -> task<> { co_await when_all(gives(1), shield(h)); }));
        EXPECT_TRUE(co_await passes_a_stop_on(
            [](handle& h) -> task<> { co_await when_any(h, sleep_for(1h)); }));
        EXPECT_TRUE(
            co_await passes_a_stop_on([](handle& h) -> task<> { co_await when_all(gives(1), h); }));
        EXPECT_TRUE(
            co_await passes_a_stop_on([](handle& h) -> task<> { co_await timeout(h, 1h); }));
        EXPECT_TRUE(co_await passes_a_stop_on([](handle& h) -> task<> {
            scope s;
            s.spawn(h);
            co_await s.join();
        }));
    };
    ctx_.run(main());
}

TEST_F(LateResults, G12_TheExceptionOfAnOwnedJoinHandleIsReported) {
    auto main = []() -> task<> {
        int cancelled = 0;
        co_await when_any(
            gives(1), spawn(waits(cancelled))); // throws operation_canceled, which is not reported
        EXPECT_EQ(cancelled, 1);
        co_await when_any(gives(1), spawn(fails_when_cancelled("told")));
        co_await when_any(gives(1), shield(spawn(fails_later("told as well", 1ms))));
    };
    ctx_.run(main());
    EXPECT_EQ(ctx_.heard, (std::vector<std::string>{"told", "told as well"}));
}

TEST_F(LateResults, G4_AViewOfNamedHandlesRefersToThem) {
    auto main = []() -> task<> {
        std::vector<join_handle<int>> handles;
        auto fill = [&handles](std::chrono::nanoseconds after) {
            handles.clear();
            for (int i = 0; i < 3; ++i) {
                handles.push_back(spawn(gives_later(i, after * (i + 1))));
            }
        };
        fill(1us);
        EXPECT_EQ(co_await when_all(std::span(handles)), (std::vector{0, 1, 2}));
        fill(1us);
        EXPECT_EQ((co_await when_all(handles | std::views::drop(1))), (std::vector{1, 2}));
        EXPECT_EQ(co_await handles[0], 0);
        fill(1h);
        handles[1].cancel();
        const auto first = co_await when_any(std::ranges::subrange(handles));
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(co_await handles[2], 2); // it was cancelled and has kept its result
        fill(1us);
        // A view that owns them.
        EXPECT_EQ(co_await when_all(std::views::all(std::move(handles))), (std::vector{0, 1, 2}));
    };
    ctx_.run(main());
}

} // namespace
