// shield: protects work from stop requests.

#include "compose/combinations.hpp"

#include <array>

using namespace coil;
using namespace compose_test;

namespace {

class Shield : public ::testing::Test {
protected:
    listening_context ctx_;
};

TEST_F(Shield, G3_IsNotCancelledFromOutside) {
    const coil_test::pipe_pair p;
    auto asks = []() -> task<bool> {
        const inplace_stop_token token = co_await this_task::stop_token();
        co_return token.stop_possible();
    };
    auto work = [](auto f, const coil_test::pipe_pair& pipe) -> task<> {
        EXPECT_EQ(co_await sleep_for(1h), -ECANCELED);
        // From now on every await is cancelled, except the shielded ones.
        std::array<char, 1> c{};
        EXPECT_EQ(co_await io::nop(), -ECANCELED);
        EXPECT_EQ(co_await shield(io::nop()), 0);
        EXPECT_EQ(co_await shield(sleep_for(1ms)), 0);
        EXPECT_EQ(co_await shield(timeout(sleep_for(0ms), 1s)), 0);
        EXPECT_EQ(co_await shield(gives_later(3)), 3);
        EXPECT_FALSE(co_await shield(f()));
        EXPECT_TRUE(co_await f());
        auto [n, written, late] = co_await shield(
            when_all(io::read(pipe.in, c), io::write(pipe.out, "x") && io::nop(), gives_later(4)));
        EXPECT_EQ(n, 1);
        EXPECT_EQ(written, 0);
        EXPECT_EQ(late, 4);
        EXPECT_EQ(co_await shield(spawn(gives_later(5))), 5);
        co_await shield(yield());
        EXPECT_EQ(co_await io::nop(), -ECANCELED);
    };
    auto main = [](auto w, auto f, const coil_test::pipe_pair& pipe) -> task<> {
        auto handle = spawn(w(f, pipe));
        co_await yield();
        handle.cancel();
        co_await handle;
    };
    ctx_.run(main(work, asks, p));
}

TEST_F(Shield, AStopDuringTheWorkTakesEffectAfterIt) {
    auto work = []() -> task<int> { co_return co_await shield(gives_later(3, 5ms)); };
    auto main = [](auto f) -> task<> {
        auto handle = spawn(f());
        co_await sleep_for(1ms);
        handle.cancel();
        EXPECT_EQ(co_await handle, 3);
    };
    ctx_.run(main(work));
}

TEST_F(Shield, CombinationsWaitForIt) {
    auto main = []() -> task<> {
        int cancelled = 0;
        bool ended = false;
        auto slow = [](bool& done) -> task<int> {
            EXPECT_EQ(co_await sleep_for(3ms), 0);
            done = true;
            co_return 1;
        };
        const auto first = co_await when_any(shield(slow(ended)), gives(1));
        EXPECT_EQ(first.index, 1U);
        EXPECT_TRUE(ended);
        ended = false;
        EXPECT_EQ(co_await complaint_of([](auto f, bool& done, int& n) -> task<> {
                      co_await when_all(shield(f(done)), fails("now"), obeys(n));
                  }(slow, ended, cancelled)),
                  "now");
        EXPECT_TRUE(ended);
        EXPECT_EQ(cancelled, 1);
        ended = false;
        EXPECT_EQ(co_await complaint_of([](auto f, bool& done) -> task<> {
                      co_await timeout(shield(f(done)), 1ms);
                  }(slow, ended)),
                  timed_out_text);
        EXPECT_TRUE(ended);
        // A shield around the task of a join_handle.
        const auto last = co_await when_any(shield(spawn(gives_later(2))), gives(1));
        EXPECT_EQ(last.index, 1U);
    };
    ctx_.run(main());
}

TEST_F(Shield, G12_ExceptionsPropagateAndThoseOfLosersAreReported) {
    auto main = []() -> task<> {
        EXPECT_EQ(co_await complaint_of([]() -> task<> { co_await shield(fails("out")); }()),
                  "out");
        co_await when_any(gives(1), shield(fails_later("aside")));
    };
    ctx_.run(main());
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"aside"});
}

TEST_F(Shield, G4_ADescriptorOfALoserIsClosed) {
    const auto before = coil_test::open_descriptors();
    auto main = []() -> task<> {
        co_await when_any(yield(), shield(io::socket(AF_UNIX, SOCK_STREAM)),
                          shield(when_all(io::socket(AF_UNIX, SOCK_STREAM), gives(1))));
    };
    ctx_.run(main());
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(Shield, G5_AShutdownDestroysShieldedWork) {
    int destroyed = 0;
    auto inner = [](coil_test::on_destruction guard) -> task<> {
        const auto local = std::move(guard);
        co_await sleep_for(1h);
    };
    auto main = [](auto f, int& count) -> task<> {
        co_await when_all(shield(f(coil_test::on_destruction(count))), shield(sleep_for(1h)),
                          shield(when_all(f(coil_test::on_destruction(count)))));
    };
    ctx_.context.co_spawn(main(inner, destroyed));
    ctx_.context.co_spawn(stops());
    ctx_.context.run();
    EXPECT_EQ(destroyed, 2);
}

TEST_F(Shield, AShieldedTaskMovesTheTasksThatAwaitIt) {
    runtime rt(2);
    auto moves = [](runtime& all) -> task<bool> {
        co_await resume_on(all.context(1));
        co_return &this_context() == &all.context(1);
    };
    auto main = [](auto f, runtime& all) -> task<> {
        EXPECT_TRUE(co_await shield(f(all)));
        EXPECT_EQ(&this_context(), &all.context(1));
    };
    rt.context(0).co_spawn(main(moves, rt));
    rt.run();
}

} // namespace
