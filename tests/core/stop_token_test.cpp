// inplace_stop_source, inplace_stop_token, inplace_stop_callback: the semantics of the standard.

#include <coil/core/inplace_stop_token.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

using namespace coil;

namespace {

TEST(StopToken, ADefaultTokenCanNeverBeStopped) {
    const inplace_stop_token token;
    EXPECT_FALSE(token.stop_possible());
    EXPECT_FALSE(token.stop_requested());
}

TEST(StopToken, SeesTheRequestOfItsSource) {
    inplace_stop_source source;
    const inplace_stop_token token = source.get_token();
    EXPECT_TRUE(token.stop_possible());
    EXPECT_FALSE(token.stop_requested());
    EXPECT_TRUE(source.request_stop());
    EXPECT_TRUE(token.stop_requested());
    EXPECT_TRUE(source.stop_requested());
}

TEST(StopToken, OnlyTheFirstRequestCounts) {
    inplace_stop_source source;
    EXPECT_TRUE(source.request_stop());
    EXPECT_FALSE(source.request_stop());
}

TEST(StopToken, ComparesAndSwapsByItsSource) {
    inplace_stop_source a;
    inplace_stop_source b;
    inplace_stop_token first = a.get_token();
    inplace_stop_token second = b.get_token();
    EXPECT_EQ(first, a.get_token());
    EXPECT_NE(first, second);
    first.swap(second);
    EXPECT_EQ(first, b.get_token());
    EXPECT_EQ(inplace_stop_token(), inplace_stop_token());
    static_assert(inplace_stop_source::stop_possible());
}

TEST(StopCallback, RunsOnceWhenTheStopIsRequested) {
    inplace_stop_source source;
    int calls = 0;
    const inplace_stop_callback callback(source.get_token(), [&] { ++calls; });
    EXPECT_EQ(calls, 0);
    source.request_stop();
    source.request_stop();
    EXPECT_EQ(calls, 1);
}

TEST(StopCallback, RegisteredAfterTheStop_RunsAtOnce) {
    inplace_stop_source source;
    source.request_stop();
    int calls = 0;
    {
        const inplace_stop_callback callback(source.get_token(), [&] { ++calls; });
        EXPECT_EQ(calls, 1);
    }
    EXPECT_EQ(calls, 1);
}

TEST(StopCallback, WithADefaultTokenItNeverRuns) {
    int calls = 0;
    {
        const inplace_stop_callback callback(inplace_stop_token(), [&] { ++calls; });
    }
    EXPECT_EQ(calls, 0);
}

TEST(StopCallback, DestroyedBeforeTheStop_DoesNotRun) {
    inplace_stop_source source;
    int calls = 0;
    {
        const inplace_stop_callback callback(source.get_token(), [&] { ++calls; });
    }
    source.request_stop();
    EXPECT_EQ(calls, 0);
}

TEST(StopCallback, OneOfManyMayBeDestroyed) {
    inplace_stop_source source;
    std::string called;
    auto count = [&](char c) { return [&called, c] { called += c; }; };
    using callback = inplace_stop_callback<std::function<void()>>;
    std::optional<callback> a(std::in_place, source.get_token(), count('a'));
    std::optional<callback> b(std::in_place, source.get_token(), count('b'));
    std::optional<callback> c(std::in_place, source.get_token(), count('c'));
    b.reset();
    source.request_stop();
    std::sort(called.begin(), called.end());
    EXPECT_EQ(called, "ac");
}

TEST(StopCallback, MayDestroyItself) {
    inplace_stop_source source;
    using callback = inplace_stop_callback<std::function<void()>>;
    int calls = 0;
    std::optional<callback> self;
    self.emplace(source.get_token(), [&] {
        ++calls;
        self.reset();
    });
    source.request_stop();
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(self.has_value());
}

TEST(StopCallback, MayDestroyAnotherOne_WhichThenDoesNotRun) {
    inplace_stop_source source;
    using callback = inplace_stop_callback<std::function<void()>>;
    std::optional<callback> a;
    std::optional<callback> b;
    int calls = 0;
    a.emplace(source.get_token(), [&] {
        ++calls;
        b.reset();
    });
    b.emplace(source.get_token(), [&] {
        ++calls;
        a.reset();
    });
    source.request_stop();
    EXPECT_EQ(calls, 1);
}

TEST(StopCallback, MayRegisterAnotherOne_WhichRunsAtOnce) {
    inplace_stop_source source;
    using callback = inplace_stop_callback<std::function<void()>>;
    std::optional<callback> second;
    int calls = 0;
    const inplace_stop_callback first(source.get_token(), [&] {
        second.emplace(source.get_token(), [&] { ++calls; });
        EXPECT_EQ(calls, 1);
    });
    source.request_stop();
    EXPECT_EQ(calls, 1);
}

TEST(StopCallback, MayRequestTheStopAgain) {
    inplace_stop_source source;
    bool second = true;
    const inplace_stop_callback callback(source.get_token(),
                                         [&] { second = source.request_stop(); });
    EXPECT_TRUE(source.request_stop());
    EXPECT_FALSE(second);
}

TEST(StopCallback, SeesTheStopRequested) {
    inplace_stop_source source;
    const inplace_stop_token token = source.get_token();
    bool seen = false;
    const inplace_stop_callback callback(token, [&] { seen = token.stop_requested(); });
    source.request_stop();
    EXPECT_TRUE(seen);
}

TEST(StopCallback, IsCalledWithTheValueCategoryOfItsTypeArgument) {
    struct picky {
        int* calls;
        void operator()() && { ++*calls; }
        void operator()() & = delete;
    };
    inplace_stop_source source;
    int calls = 0;
    const inplace_stop_callback<picky> callback(source.get_token(), picky{&calls});
    source.request_stop();
    EXPECT_EQ(calls, 1);
    static_assert(
        std::is_same_v<inplace_stop_token::callback_type<picky>, inplace_stop_callback<picky>>);
}

} // namespace
