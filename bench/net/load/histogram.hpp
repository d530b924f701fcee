// Latencies in nanoseconds, counted in buckets of at most 1/64 relative width: percentiles are
// accurate to 1.6 %.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace load {

class histogram {
public:
    void add(std::uint64_t value) {
        ++counts_[bucket(value)];
        ++total_;
        max_ = std::max(max_, value);
    }

    void clear() { *this = histogram{}; }

    std::uint64_t max() const { return max_; }

    // The smallest bucket bound that at least `share` of the values do not exceed; 0 if there are
    // no values.
    std::uint64_t percentile(double share) const {
        if (total_ == 0) {
            return 0;
        }
        const double wanted = share * static_cast<double>(total_);
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (static_cast<double>(seen) >= wanted) {
                return std::min(upper_bound(i), max_);
            }
        }
        return max_;
    }

private:
    static constexpr unsigned precision = 6;
    static constexpr std::size_t buckets = (64 - precision + 1) << precision;

    // Values below 64 have one bucket each; above, every power of two is divided into 64.
    static std::size_t bucket(std::uint64_t value) {
        const auto width = static_cast<unsigned>(std::bit_width(value));
        if (width <= precision) {
            return value;
        }
        const unsigned shift = width - precision - 1;
        return (std::size_t{shift} << precision) + (value >> shift);
    }

    static std::uint64_t upper_bound(std::size_t index) {
        if (index < (std::size_t{2} << precision)) {
            return index;
        }
        const auto shift = static_cast<unsigned>(index >> precision) - 1;
        const std::uint64_t mantissa = index - (std::size_t{shift} << precision);
        return ((mantissa + 1) << shift) - 1;
    }

    std::array<std::uint64_t, buckets> counts_{};
    std::uint64_t total_ = 0;
    std::uint64_t max_ = 0;
};

} // namespace load
