#pragma once

#include <coil/base/minmax.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace coil {

/// A histogram with power-of-two buckets: bucket 0 counts the values 0 and 1, bucket i those in
/// (2^(i-1), 2^i], the last one all larger values. coil's values are nanoseconds.
///
/// A plain value that allocates nothing. Quantiles are accurate to a factor of two. Sum and mean
/// are exact as long as the sum of all values fits into 64 bits (584 years of nanoseconds).
class log2_histogram {
public:
    static constexpr std::size_t buckets = 64;
    using counts = std::array<std::uint64_t, buckets>;

    constexpr log2_histogram() noexcept = default;
    constexpr log2_histogram(const counts& in_bucket, std::uint64_t sum) noexcept
        : in_bucket_(in_bucket), sum_(sum) {}

    /// The index of the bucket that counts `value`.
    [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
        const std::uint64_t below = value - (value != 0 ? 1 : 0);
        return detail::min<std::size_t>(static_cast<std::size_t>(std::bit_width(below)),
                                        buckets - 1);
    }
    /// The largest value that bucket `i` counts.
    [[nodiscard]] static constexpr std::uint64_t upper_bound(std::size_t i) noexcept {
        return i < buckets - 1 ? std::uint64_t{1} << i : std::numeric_limits<std::uint64_t>::max();
    }

    constexpr void add(std::uint64_t value, std::uint64_t times = 1) noexcept {
        in_bucket_[bucket_of(value)] += times;
        sum_ += value * times;
    }

    [[nodiscard]] constexpr std::uint64_t bucket(std::size_t i) const noexcept {
        return in_bucket_[i];
    }
    [[nodiscard]] constexpr std::uint64_t count() const noexcept {
        std::uint64_t n = 0;
        for (const std::uint64_t here : in_bucket_) {
            n += here;
        }
        return n;
    }
    [[nodiscard]] constexpr std::uint64_t sum() const noexcept { return sum_; }
    /// 0 if empty.
    [[nodiscard]] constexpr double mean() const noexcept {
        const std::uint64_t n = count();
        return n == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(n);
    }

    /// An upper bound of the q-quantile: at least the fraction `q` of all values is not larger. It
    /// is less than twice the quantile, except that it is 1 if the quantile is 0, and the largest
    /// number if the quantile is above 2^62. `q` is clamped to [0, 1]. 0 if empty.
    [[nodiscard]] constexpr std::uint64_t quantile(double q) const noexcept {
        const std::uint64_t n = count();
        if (n == 0) {
            return 0;
        }
        const double wanted = detail::min(detail::max(q, 0.0), 1.0) * static_cast<double>(n);
        std::uint64_t seen = 0;
        std::size_t largest = 0;
        for (std::size_t i = 0; i < buckets; ++i) {
            if (in_bucket_[i] == 0) {
                continue;
            }
            largest = i;
            seen += in_bucket_[i];
            if (static_cast<double>(seen) >= wanted) {
                break;
            }
        }
        return upper_bound(largest);
    }

    /// Adds the counts of another histogram, for example of another context.
    constexpr log2_histogram& operator+=(const log2_histogram& other) noexcept {
        for (std::size_t i = 0; i < buckets; ++i) {
            in_bucket_[i] += other.in_bucket_[i];
        }
        sum_ += other.sum_;
        return *this;
    }
    /// Subtracts an earlier copy, leaving what was added since.
    constexpr log2_histogram& operator-=(const log2_histogram& earlier) noexcept {
        for (std::size_t i = 0; i < buckets; ++i) {
            in_bucket_[i] -= earlier.in_bucket_[i];
        }
        sum_ -= earlier.sum_;
        return *this;
    }
    friend constexpr bool operator==(const log2_histogram&,
                                     const log2_histogram&) noexcept = default;

private:
    counts in_bucket_{};
    std::uint64_t sum_ = 0;
};

} // namespace coil
