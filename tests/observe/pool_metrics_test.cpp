// The metrics of pools of threads that have the same name.

#include "../../src/context/watched_pool.hpp"
#include "support.hpp"

#include <optional>
#include <string>
#include <utility>

namespace {

using coil::detail::pool_figures;
using coil_test::count_of;

class pool final : public coil::detail::watched_pool {
public:
    pool(std::string name, std::uint64_t threads_made)
        : name_(std::move(name)), threads_made_(threads_made) {
        begin_watching();
    }
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;
    ~pool() { end_watching(); }

    [[nodiscard]] std::optional<bool> is_full() const noexcept override { return false; }
    [[nodiscard]] const std::string& name() const noexcept override { return name_; }
    [[nodiscard]] std::optional<pool_figures> figures() const override {
        return pool_figures{.name = name_, .threads_made = threads_made_};
    }

private:
    std::string name_;
    std::uint64_t threads_made_;
};

/// How often the page of all pools has this series with this value.
std::size_t count_of_series(const std::string& labels, int value) {
    std::string page;
    coil::detail::write_pools(page);
    return count_of(page,
                    "coil_pool_threads_made_total{" + labels + "} " + std::to_string(value) + '\n');
}

TEST(PoolMetrics, OfAPoolKeepTheirLabelsWhileItExists) {
    std::optional<pool> first(std::in_place, "twin", 1);
    EXPECT_EQ(count_of_series(R"(pool="twin")", 1), 1U);
    std::optional<pool> second(std::in_place, "twin", 2);
    const pool third("twin", 3);
    const pool other("other", 4);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(count_of_series(R"(pool="twin")", 1), i == 0 ? 1U : 0U);
        EXPECT_EQ(count_of_series(R"(number="2",pool="twin")", 2), 1U);
        EXPECT_EQ(count_of_series(R"(number="3",pool="twin")", 3), 1U);
        EXPECT_EQ(count_of_series(R"(pool="other")", 4), 1U);
        first.reset();
    }
    second.reset();
    const pool fifth("twin", 5);
    const pool sixth("twin", 6);
    EXPECT_EQ(count_of_series(R"(pool="twin")", 5), 1U);
    EXPECT_EQ(count_of_series(R"(number="2",pool="twin")", 6), 1U);
    EXPECT_EQ(count_of_series(R"(number="3",pool="twin")", 3), 1U);
}

} // namespace
