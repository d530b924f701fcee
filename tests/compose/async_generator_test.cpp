// async_generator: asynchronous sequences.

#include "compose/combinations.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>

using namespace coil;
using namespace compose_test;
using coil_test::pipe_pair;

namespace {

class AsyncGenerator : public ::testing::Test {
protected:
    listening_context ctx_;
};

using owned = std::unique_ptr<async_generator<int>>;

async_generator<int> count_to(int last, std::chrono::nanoseconds each = 0ns) {
    for (int i = 1; i <= last; ++i) {
        if (each > 0ns) {
            co_await sleep_for(each);
        }
        co_yield i;
    }
}

TEST_F(AsyncGenerator, YieldsItsElementsInOrder) {
    auto main = []() -> task<int> {
        int sum = 0;
        auto quick = count_to(10);
        while (auto n = co_await quick.next()) {
            sum += *n;
        }
        EXPECT_FALSE(co_await quick.next()); // it stays at its end
        auto slow = count_to(10, 100us);
        while (auto n = co_await slow.next()) {
            sum += *n;
        }
        co_return sum;
    };
    EXPECT_EQ(ctx_.run(main()), 110);
}

TEST_F(AsyncGenerator, ReferencesAndMoveOnlyElements) {
    auto owners = []() -> async_generator<std::unique_ptr<int>> {
        co_yield std::make_unique<int>(1);
        co_await yield();
        co_yield std::make_unique<int>(2);
    };
    auto references = [](std::vector<int>& all) -> async_generator<int&> {
        for (int& n : all) {
            co_await yield();
            co_yield n;
        }
    };
    std::vector<int> numbers{1, 2};
    auto main = [](auto o, auto r, std::vector<int>& all) -> task<> {
        auto values = o();
        EXPECT_EQ(**(co_await values.next()), 1);
        EXPECT_EQ(**(co_await values.next()), 2);
        EXPECT_FALSE(co_await values.next());
        auto named = r(all);
        while (int* n = co_await named.next()) {
            *n *= 10;
        }
    };
    ctx_.run(main(owners, references, numbers));
    EXPECT_EQ(numbers, (std::vector{10, 20}));
}

TEST_F(AsyncGenerator, G10_ElementsThatAreReadyDoNotGrowTheStack) {
    auto main = []() -> task<int> {
        int sum = 0;
        auto all = count_to(coil_test::rounds(100'000, 10'000'000));
        while (auto n = co_await all.next()) {
            sum += *n % 2;
        }
        co_return sum;
    };
    EXPECT_EQ(ctx_.run(main()), coil_test::rounds(50'000, 5'000'000));
}

TEST_F(AsyncGenerator, GeneratorsCanBeChained) {
    auto lines = [](int fd) -> async_generator<std::string> {
        std::string line;
        std::array<char, 3> buf{};
        for (int n; (n = co_await io::read(fd, buf)) > 0;) {
            for (int i = 0; i < n; ++i) {
                if (buf.at(static_cast<std::size_t>(i)) == '\n') {
                    co_yield std::exchange(line, {});
                } else {
                    line += buf.at(static_cast<std::size_t>(i));
                }
            }
        }
        if (!line.empty()) {
            co_yield std::move(line);
        }
    };
    auto longer = [](async_generator<std::string> all,
                     std::size_t than) -> async_generator<std::string> {
        while (auto line = co_await all.next()) {
            if (line->size() > than) {
                co_yield std::move(*line);
            }
        }
    };
    auto main = [](auto l, auto f) -> task<> {
        pipe_pair p;
        p.put("one\nthree\n\nfour\nx\nfifth");
        p.out.reset();
        auto all = f(l(p.in), 3);
        std::vector<std::string> seen;
        while (auto line = co_await all.next()) {
            seen.push_back(*line);
        }
        EXPECT_EQ(seen, (std::vector<std::string>{"three", "four", "fifth"}));
    };
    ctx_.run(main(lines, longer));
}

TEST_F(AsyncGenerator, G12_NextThrowsAnExceptionOnce) {
    auto throws = []() -> async_generator<int> {
        co_yield 1;
        co_await sleep_for(1us);
        throw oops("enough");
    };
    auto main = [](auto f) -> task<> {
        auto all = f();
        EXPECT_TRUE(co_await all.next());
        EXPECT_EQ(co_await complaint_of([](auto& g) -> task<> { co_await g.next(); }(all)),
                  "enough");
        EXPECT_FALSE(co_await all.next());
        // The same with next() as a child of when_all().
        auto more = f();
        EXPECT_EQ(co_await complaint_of([](auto& g) -> task<> {
                      while (true) {
                          co_await when_all(g.next(), yield());
                      }
                  }(more)),
                  "enough");
    };
    ctx_.run(main(throws));
}

TEST_F(AsyncGenerator, G3_AStopOfTheConsumerReachesTheBody) {
    auto waits_twice = []() -> async_generator<int> {
        co_yield co_await sleep_for(1h);
        co_yield co_await sleep_for(0s);
    };
    auto first = [](async_generator<int>& all) -> task<int> { co_return *(co_await all.next()); };
    auto main = [](auto f, auto g) -> task<> {
        auto all = f();
        auto handle = spawn(g(all));
        co_await yield();
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        EXPECT_EQ(co_await all.next(), 0); // this one was not cancelled
        auto more = f();
        EXPECT_EQ(
            co_await complaint_of([](auto& m) -> task<> { co_await timeout(m.next(), 1ms); }(more)),
            timed_out_text);
        EXPECT_EQ(*(co_await more.next()), -ECANCELED); // a late element is kept
        EXPECT_EQ(co_await shield(more.next()), 0);
    };
    ctx_.run(main(waits_twice, first));
}

TEST_F(AsyncGenerator, G2_TheTokenOfAGeneratorOutlivesTheConsumer) {
    int cancelled = 0;
    auto keeps = [](int& count) -> async_generator<int> {
        const inplace_stop_token token = co_await this_task::stop_token();
        scope s(token);
        s.spawn(obeys(count));
        co_yield 1;
        EXPECT_EQ(co_await this_task::stop_token(), token);
        EXPECT_FALSE(token.stop_requested());
        co_yield 2;
        co_yield co_await sleep_for(1h);
        // The request was consumed by the next() it was meant for.
        EXPECT_FALSE(token.stop_requested());
        co_await s.join();
    };
    auto next = [](async_generator<int>& all) -> task<int> { co_return *(co_await all.next()); };
    auto main = [](auto k, auto n, int& count) -> task<> {
        auto all = k(count);
        EXPECT_EQ(co_await timeout(n(all), 1h), 1);
        co_await yield();
        EXPECT_EQ(std::get<0>(co_await when_all(n(all))), 2);
        EXPECT_EQ(count, 0);
        auto handle = spawn(n(all));
        co_await yield();
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        EXPECT_FALSE(co_await all.next());
        EXPECT_EQ(count, 1);
        auto dropped = k(count);
        co_await timeout(n(dropped), 1h);
    };
    ctx_.run(main(keeps, next, cancelled));
}

/// Resumes the waiting coroutine from within the stop request.
class resumes_at_once {
public:
    resumes_at_once() = default;
    resumes_at_once(const resumes_at_once&) = delete;
    resumes_at_once& operator=(const resumes_at_once&) = delete;
    ~resumes_at_once() = default;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) {
        waiter_ = waiter;
        callback_.emplace(waiter.promise().stop_token(), resumer{*this});
    }
    void await_resume() { callback_.reset(); }

private:
    struct resumer {
        resumes_at_once& self;
        void operator()() const noexcept { detail::resume(self.waiter_); }
    };

    std::coroutine_handle<> waiter_;
    std::optional<inplace_stop_callback<resumer>> callback_;
};

TEST_F(AsyncGenerator, G2_TheConsumerIsDestroyedRightAfterAStopHasResumedIt) {
    auto waits = []() -> async_generator<int> {
        co_await resumes_at_once();
        co_yield 1;
    };
    auto takes_one = [](auto make, int& got) -> task<> {
        auto all = make();
        got += *(co_await all.next());
    };
    auto main = [](auto w, auto t) -> task<> {
        int got = 0;
        auto handle = spawn(t(w, got));
        co_await yield();
        handle.cancel();
        co_await handle;
        EXPECT_EQ(got, 1);
        {
            scope s;
            s.spawn(t(w, got));
            co_await yield();
            s.cancel(); // destroyed before it is resumed
        }
        EXPECT_EQ(got, 1);
        auto all = std::make_unique<async_generator<int>>(w());
        auto stopped = [](owned& g) -> task<> {
            auto next = spawn([](owned& of) -> task<> { EXPECT_FALSE(co_await of->next()); }(g));
            co_await yield();
            next.cancel();
            g.reset();
            co_await next;
        };
        co_await stopped(all);
    };
    ctx_.run(main(waits, takes_one));
}

/// A coroutine that starts immediately and destroys itself.
struct independent {
    struct promise_type {
        independent get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
        [[nodiscard]] inplace_stop_token stop_token() const noexcept { return {}; }
    };
};

/// A coroutine that starts immediately, and that the member `stop` of its parameter stops.
struct stoppable {
    struct promise_type {
        template <class State>
        explicit promise_type(State& s) noexcept : token(s.stop.get_token()) {}
        stoppable get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
        [[nodiscard]] inplace_stop_token stop_token() const noexcept { return token; }

        inplace_stop_token token;
    };
    std::coroutine_handle<promise_type> handle;
};

TEST_F(AsyncGenerator, G2_AStopCallbackOfTheBodyAwaitsNextForAnotherConsumer) {
    struct state {
        inplace_stop_source stop;
        std::optional<async_generator<int>> all;
        stoppable consumer;
        int got[2] = {0, 0};

        static async_generator<int> body(state& s) {
            const inplace_stop_token token = co_await this_task::stop_token();
            {
                const inplace_stop_callback runs_last(token, [&s] { take_over(s); });
                co_await resumes_at_once();
                co_yield 1;
                co_yield token.stop_requested() ? 2 : -2;
            }
            co_yield token.stop_requested() ? -3 : 3;
        }
        static stoppable consume(state& s) { co_await s.all->next(); }
        /// The body has yielded, and its consumer is in the ready queue.
        static void take_over(state& s) {
            s.consumer.handle.destroy();
            consume_otherwise(s);
            EXPECT_EQ(s.got[0], 1);
            EXPECT_EQ(s.got[1], 0); // resumed when the request has ended
        }
        static independent consume_otherwise(state& s) {
            for (int& one : s.got) {
                one = *(co_await s.all->next());
            }
        }
        static task<> main(state& s) {
            s.all.emplace(body(s));
            s.consumer = consume(s);
            s.stop.request_stop();
            co_await yield();
            EXPECT_EQ(s.got[1], 2);
            EXPECT_EQ(*(co_await s.all->next()), 3);
            EXPECT_FALSE(co_await s.all->next());
        }
    };
    state s;
    ctx_.run(state::main(s));
}

TEST_F(AsyncGenerator, ALosingNextLosesNoElement) {
    auto main = []() -> task<> {
        auto all = count_to(50, 50us);
        int expected = 0;
        while (true) {
            auto first = co_await when_any(yield(), all.next(), sleep_for(1us));
            if (first.index == 1) {
                const auto& element = std::get<1>(first.value);
                if (!element) {
                    break;
                }
                EXPECT_EQ(*element, ++expected);
            } else if (auto element = co_await all.next()) {
                EXPECT_EQ(*element, ++expected);
            } else {
                break;
            }
        }
        EXPECT_EQ(expected, 50);
    };
    ctx_.run(main());
}

async_generator<int> held_numbers(int& destroyed) {
    const coil_test::on_destruction guard(destroyed);
    co_yield 1;
    co_await sleep_for(1h);
    co_yield 2;
}

TEST_F(AsyncGenerator, G5_DestroyingAGeneratorDestroysItsSuspendedBody) {
    int destroyed = 0;
    auto main = [](int& count) -> task<> {
        {
            const auto unused = held_numbers(count);
        }
        EXPECT_EQ(count, 0); // the body had not begun
        {
            auto used = held_numbers(count);
            EXPECT_EQ(co_await used.next(), 1);
        }
        EXPECT_EQ(count, 1);
        // The consumer is destroyed while it waits.
        auto all = held_numbers(count);
        {
            auto waiting = [](auto& g) -> coil_test::manual {
                co_await g.next();
                co_await g.next();
                ADD_FAILURE() << "the coroutine was resumed";
            };
            const auto victim = waiting(all);
            victim.start();
            co_await yield();
        }
        EXPECT_EQ(count, 2);
        EXPECT_FALSE(co_await all.next());
    };
    ctx_.run(main(destroyed));
}

TEST_F(AsyncGenerator, G5_AShutdownDestroysASuspendedBody) {
    int destroyed = 0;
    auto shared = std::make_shared<std::optional<async_generator<int>>>(held_numbers(destroyed));
    auto consumes = [](auto all) -> task<> {
        co_await (*all)->next();
        co_await (*all)->next();
    };
    auto as_child = [](int& count) -> task<> {
        auto all = held_numbers(count);
        co_await all.next();
        co_await when_any(all.next(), sleep_for(1h));
    };
    ctx_.context.co_spawn(consumes(std::move(shared)));
    ctx_.context.co_spawn(as_child(destroyed));
    ctx_.context.co_spawn(stops());
    ctx_.context.run();
    EXPECT_EQ(destroyed, 2);
}

task<> destroys(owned& all, std::chrono::nanoseconds after) {
    co_await sleep_for(after);
    all.reset();
}

TEST_F(AsyncGenerator, G1_G2_DestroyedBeforeItsElementIsTaken) {
    auto main = []() -> task<> {
        // suspended in an await, at its co_yield, or finished
        for (int taken = 0; taken < 3; ++taken) {
            auto all = std::make_unique<async_generator<int>>(count_to(2));
            for (int i = 0; i < taken; ++i) {
                co_await all->next();
            }
            auto [element, _] = co_await when_all(all->next(), destroys(all, 1ms));
            EXPECT_FALSE(element);
        }
        auto kept = std::make_unique<async_generator<int>>(count_to(2, 1us));
        co_await when_any(yield(), kept->next()); // leaves an element in the generator
        auto [element, _] = co_await when_all(kept->next(), destroys(kept, 1ms));
        EXPECT_FALSE(element);
    };
    ctx_.run(main());
}

TEST_F(AsyncGenerator, G1_AWaiterOfADestroyedGeneratorGetsTheEnd) {
    int destroyed = 0;
    auto consumes = [](owned& all, int& ends) -> task<> {
        EXPECT_TRUE(co_await all->next());
        EXPECT_FALSE(co_await all->next());
        ++ends;
    };
    auto main = [](auto c, int& count) -> task<> {
        int ends = 0;
        auto all = std::make_unique<async_generator<int>>(held_numbers(count));
        co_await when_all(c(all, ends), destroys(all, 1ms));
        auto again = std::make_unique<async_generator<int>>(held_numbers(count));
        co_await again->next();
        auto [end, _] = co_await when_all(again->next(), destroys(again, 1ms));
        EXPECT_FALSE(end);
        EXPECT_EQ(ends, 1);
        // The waiter is destroyed before it is resumed.
        auto last = std::make_unique<async_generator<int>>(held_numbers(count));
        {
            auto waiting = [](owned& g) -> coil_test::manual {
                co_await g->next();
                co_await g->next();
                ADD_FAILURE() << "the coroutine was resumed";
            };
            const auto victim = waiting(last);
            victim.start();
            co_await yield();
            last.reset();
        }
        co_await yield();
    };
    ctx_.run(main(consumes, destroyed));
    EXPECT_EQ(destroyed, 3);
}

TEST_F(AsyncGenerator, G12_AnExceptionThatIsNotTakenIsReported) {
    auto fails_late = []() -> async_generator<int> {
        co_yield 1;
        co_await sleep_for(1h);
        throw oops("flush failed");
    };
    auto is_cancelled = []() -> async_generator<int> {
        co_yield 1;
        (co_await sleep_for(1h)).value();
    };
    auto main = [](auto... makes) -> task<> {
        auto lose = [](auto make) -> task<> {
            auto all = make();
            co_await all.next();
            co_await when_any(all.next(), sleep_for(1us));
        };
        (co_await lose(makes), ...);
    };
    ctx_.run(main(fails_late, is_cancelled));
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"flush failed"});
}

TEST_F(AsyncGenerator, ElementsNeedNoDefaultConstructor) {
    struct fixed { // neither assignable nor default-constructible
        explicit fixed(int v) : value(v) {}
        fixed(fixed&&) = default;
        fixed& operator=(fixed&&) = delete;
        int value;
    };
    auto fixed_ones = []() -> async_generator<fixed> {
        co_yield fixed(1);
        co_yield fixed(2);
    };
    auto constants = []() -> async_generator<const std::string> { co_yield "abc"; };
    auto converted = []() -> async_generator<const std::string&> {
        co_yield "abc";
        const std::string named = "def";
        co_yield named;
    };
    auto movable = []() -> async_generator<std::string&&> { co_yield std::string("ghi"); };
    auto main = [](auto f, auto c, auto r, auto m) -> task<> {
        auto a = f();
        EXPECT_EQ((co_await a.next())->value, 1);
        EXPECT_EQ((co_await a.next())->value, 2);
        EXPECT_FALSE(co_await a.next());
        auto b = c();
        EXPECT_EQ(*(co_await b.next()), "abc");
        EXPECT_FALSE(co_await b.next());
        auto d = r();
        EXPECT_EQ(*(co_await d.next()), "abc");
        EXPECT_EQ(*(co_await d.next()), "def");
        EXPECT_FALSE(co_await d.next());
        auto e = m();
        EXPECT_EQ(std::move(*(co_await e.next())), "ghi");
        EXPECT_FALSE(co_await e.next());
    };
    ctx_.run(main(fixed_ones, constants, converted, movable));
}

TEST_F(AsyncGenerator, TwoConcurrentNextTerminateTheProgram) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto main = []() -> task<> {
        auto all = count_to(2, 1ms);
        co_await when_all(all.next(), all.next());
    };
    EXPECT_DEATH(ctx_.run(main()), "two coroutines await next\\(\\) of one async_generator");
}

TEST_F(AsyncGenerator, MovingItDuringNextTerminatesTheProgram) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto takes_one = [](async_generator<int>& all) -> task<> {
        static_cast<void>(co_await all.next());
    };
    auto main = [](auto f) -> task<> {
        auto all = count_to(2, 24h);
        [[maybe_unused]] auto waits = coil::spawn(f(all));
        co_await yield();
        co_await yield();
        const auto moved = std::move(all);
    };
    EXPECT_DEATH(ctx_.run(main(takes_one)), "moved while a coroutine waits in next\\(\\)");
}

} // namespace
