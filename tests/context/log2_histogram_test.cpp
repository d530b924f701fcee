#include <coil/context/log2_histogram.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

using coil::log2_histogram;

namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

static_assert(log2_histogram::bucket_of(0) == 0);
static_assert(log2_histogram::bucket_of(1) == 0);
static_assert(log2_histogram::bucket_of(2) == 1);
static_assert(log2_histogram::bucket_of(3) == 2);
static_assert(log2_histogram::bucket_of(4) == 2);
static_assert(log2_histogram::bucket_of(5) == 3);
static_assert(log2_histogram::bucket_of(largest) == 63);
static_assert([] {
    log2_histogram h;
    h.add(3, 2);
    h.add(100);
    return h.count() == 3 && h.sum() == 106 && h.quantile(0.5) == 4 && h.quantile(1) == 128;
}());

TEST(Log2Histogram, ABucketCountsTheValuesWithinItsBounds) {
    for (std::size_t i = 0; i + 1 < log2_histogram::buckets; ++i) {
        const std::uint64_t bound = log2_histogram::upper_bound(i);
        EXPECT_EQ(log2_histogram::bucket_of(bound), i);
        EXPECT_EQ(log2_histogram::bucket_of(bound + 1), i + 1);
    }
    EXPECT_EQ(log2_histogram::upper_bound(63), largest);
}

TEST(Log2Histogram, MeanAndQuantilesOfAnEmptyOneAreZero) {
    constexpr log2_histogram nothing;
    EXPECT_EQ(nothing.count(), 0U);
    EXPECT_EQ(nothing.mean(), 0.0);
    EXPECT_EQ(nothing.quantile(0.5), 0U);
}

TEST(Log2Histogram, AQuantileIsAnUpperBoundLessThanTwiceTheValue) {
    std::vector<std::uint64_t> values;
    log2_histogram h;
    for (std::uint64_t v = 1; v <= 1000; ++v) {
        values.push_back(v * v);
        h.add(v * v);
    }
    for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 1.0}) {
        const std::uint64_t exact = values[static_cast<std::size_t>(q * 1000) - 1];
        EXPECT_GE(h.quantile(q), exact) << q;
        EXPECT_LT(h.quantile(q), 2 * exact) << q;
    }
    EXPECT_EQ(h.quantile(-1), h.quantile(0));
    EXPECT_EQ(h.quantile(0), 1U);
    EXPECT_EQ(h.quantile(7), h.quantile(1));
}

TEST(Log2Histogram, SupportsSumAndDifference) {
    log2_histogram first;
    first.add(10, 3);
    log2_histogram later = first;
    later.add(500);
    log2_histogram news = later;
    news -= first;
    EXPECT_EQ(news.count(), 1U);
    EXPECT_EQ(news.sum(), 500U);
    EXPECT_EQ(news.quantile(0.5), 512U);
    news += first;
    EXPECT_EQ(news, later);
    EXPECT_EQ(later.bucket(log2_histogram::bucket_of(10)), 3U);
}

} // namespace
