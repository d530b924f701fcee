// Builds with assertions end with a sentence if a running coroutine destroys its own frame.

#include "support/run.hpp"

#include <coil/base/assert.hpp>

#include <memory>
#include <optional>

using namespace coil;

namespace {

class SelfDestruction : public ::testing::Test {
protected:
    void SetUp() override {
        if (!COIL_ASSERTIONS) {
            GTEST_SKIP() << "assertions are disabled";
        }
    }
    static constexpr const char* sentence = "coil: a coroutine that runs is destroyed by itself";
};

task<> destroys_scope(std::unique_ptr<scope>& own) {
    own.reset();
    co_return;
}

template <class Child>
task<> runs_child(Child child) {
    auto own = std::make_unique<scope>();
    own->spawn(child(own));
    co_await sleep_for(std::chrono::milliseconds(1));
}

TEST_F(SelfDestruction, AChildDestroysItsScope) {
    auto child = [](std::unique_ptr<scope>& own) { return destroys_scope(own); };
    EXPECT_DEATH(coil::run(runs_child(child)), sentence);
}

TEST_F(SelfDestruction, AnAwaitedTaskDestroysTheScope) {
    auto child = [](std::unique_ptr<scope>& own) -> task<> {
        co_await yield();
        co_await destroys_scope(own);
        co_await yield();
    };
    EXPECT_DEATH(coil::run(runs_child(child)), sentence);
}

TEST_F(SelfDestruction, AChildDestroysItsScopeAfterATask) {
    auto child = [](std::unique_ptr<scope>& own) -> task<> {
        co_await []() -> task<> { co_await yield(); }();
        own.reset();
    };
    EXPECT_DEATH(coil::run(runs_child(child)), sentence);
}

TEST_F(SelfDestruction, ATaskDestroysItself) {
    auto main = []() -> task<> {
        std::optional<task<>> own;
        auto resets = [](std::optional<task<>>& mine) -> task<> {
            mine.reset();
            co_return;
        };
        own = resets(own);
        co_await std::move(*own);
    };
    EXPECT_DEATH(coil::run(main()), sentence);
}

/// The frames that it destroys are suspended.
TEST_F(SelfDestruction, ATaskDestroysOthers) {
    auto main = []() -> task<> {
        auto others = std::make_unique<scope>();
        others->spawn([]() -> task<> { co_await sleep_for(std::chrono::hours(1)); }());
        co_await [](std::unique_ptr<scope>& all) -> task<> {
            co_await yield();
            all.reset();
        }(others);
        co_await yield();
        EXPECT_EQ(others, nullptr);
    };
    coil::run(main());
}

} // namespace
