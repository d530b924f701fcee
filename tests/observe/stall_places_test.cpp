// What the watchdog keeps of its reports: one entry for each place, for a limited number of places.

#include "../../src/context/stall_places.hpp"
#include "support.hpp"

#include <optional>
#include <string>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::count_of;
using detail::reported_stall;
using detail::stall_places;

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t interval = 10 * second;

stall_report lasting(std::chrono::nanoseconds time, std::string place) {
    stall_report report;
    report.where = std::move(place);
    report.duration = time;
    return report;
}

/// A long turn at `place`, noticed at the second `at` of the clock.
class turn {
public:
    turn(stall_places& places, std::string place, std::int64_t at) : places_(places) {
        begin_ = places_.note(lasting(30ms, place), place, 1, at * second, interval, &stall);
    }
    [[nodiscard]] const std::optional<stall_report>& begin() const { return begin_; }
    std::optional<stall_report> end(std::chrono::nanoseconds time) {
        return places_.end(stall, lasting(time, stall.place));
    }

    reported_stall stall;

private:
    stall_places& places_;
    std::optional<stall_report> begin_;
};

TEST(StallPlaces, TheEndIsReportedIfTheBeginningWasReported) {
    stall_places places;
    turn first(places, "x", 1);
    ASSERT_TRUE(first.begin());
    EXPECT_FALSE(first.begin()->has_ended);
    const auto end = first.end(304ms);
    ASSERT_TRUE(end);
    EXPECT_TRUE(end->has_ended);
    EXPECT_EQ(end->duration, 304ms);
    EXPECT_EQ(end->longest, 304ms);

    turn second_one(places, "x", 2);
    EXPECT_FALSE(second_one.begin());
    EXPECT_FALSE(second_one.end(100ms));
    turn third(places, "x", 3);
    EXPECT_FALSE(third.end(200ms));
    EXPECT_TRUE(places.holds_back());
    reported_stall none;
    EXPECT_FALSE(places.take_due(1, 10 * second, interval, none));
    EXPECT_FALSE(places.take_due(2, 11 * second, interval, none)); // of another run
    const auto due = places.take_due(1, 11 * second, interval, none);
    ASSERT_TRUE(due);
    EXPECT_EQ(due->times, 2U);
    EXPECT_EQ(due->duration, 200ms);
    EXPECT_EQ(due->longest, 304ms);
    EXPECT_TRUE(due->has_ended);
    EXPECT_FALSE(places.holds_back());
}

TEST(StallPlaces, ATurnThatIsFirstReportedByADelayedReportHasItsEndReportedToo) {
    stall_places places;
    EXPECT_TRUE(turn(places, "x", 1).end(40ms));
    turn longer(places, "x", 2);
    EXPECT_FALSE(longer.begin());
    const auto due = places.take_due(1, 12 * second, interval, longer.stall);
    ASSERT_TRUE(due);
    EXPECT_FALSE(due->has_ended);
    const auto end = longer.end(10s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->duration, 10s);
    EXPECT_EQ(end->longest, 10s);
}

TEST(StallPlaces, KeepsTheLongestOfEachPlace) {
    stall_places places;
    static_cast<void>(turn(places, "short", 1).end(40ms));
    static_cast<void>(turn(places, "long", 2).end(304ms));
    static_cast<void>(turn(places, "long", 3).end(50ms));
    const turn unfinished(places, "short", 4);
    const auto all = places.all();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].longest.duration, 304ms);
    EXPECT_EQ(all[0].longest.times, 2U);
    EXPECT_EQ(all[0].last, 50ms);
    EXPECT_EQ(all[0].lasting, 0U);
    EXPECT_EQ(all[1].longest.duration, 40ms);
    EXPECT_EQ(all[1].longest.times, 2U);
    EXPECT_EQ(all[1].last, 30ms);
    EXPECT_EQ(all[1].lasting, 1U);
    const std::string json = detail::to_json(all, true, 10 * second);
    EXPECT_EQ(
        count_of(json,
                 R"("times":2,"longest_s":0.304,"last_s":0.050,"found_s_ago":7.000,"lasts":false)"),
        1U)
        << json;
    EXPECT_EQ(
        count_of(json, R"("longest_s":0.040,"last_s":0.030,"found_s_ago":6.000,"lasts":true)"), 1U)
        << json;
}

TEST(StallPlaces, ForgetsThePlaceWhereNothingHasHappenedForLongest) {
    stall_places places;
    constexpr std::int64_t most = 256;
    for (std::int64_t i = 0; i < most; ++i) {
        static_cast<void>(turn(places, std::to_string(i), 1 + i).end((i == 0 ? 500ms : 40ms)));
    }
    EXPECT_EQ(places.all().size(), 256U);
    static_cast<void>(turn(places, "0", most).end(40ms)); // now the oldest is "1"
    static_cast<void>(turn(places, "new", most + 1).end(400ms));
    const auto all = places.all();
    ASSERT_EQ(all.size(), 256U);
    EXPECT_EQ(all[0].longest.duration, 500ms);
    EXPECT_EQ(all[0].longest.times, 2U);
    EXPECT_EQ(all[1].longest.duration, 400ms);
    for (const detail::stalls_of_place& one : all) {
        EXPECT_NE(one.longest.where, "1");
    }
}

TEST(StallPlaces, BeyondTheLimitNewPlacesShareOneEntry) {
    stall_places places;
    std::size_t passed_on = 0;
    for (int i = 0; i < 1000; ++i) {
        turn one(places, std::to_string(i), 1);
        passed_on += one.begin() ? 1 : 0;
        EXPECT_EQ(one.end(40ms).has_value(), one.begin().has_value());
    }
    EXPECT_EQ(passed_on, 257U);
    EXPECT_EQ(places.all().size(), 257U);
}

/// A place may get an entry of its own while an earlier turn there is counted in the shared entry.
TEST(StallPlaces, ATurnEndsInTheEntryWhereItHasBegun) {
    stall_places places;
    for (int i = 0; i < 256; ++i) {
        static_cast<void>(turn(places, std::to_string(i), 1).end(40ms));
    }
    turn shared(places, "new", 2);
    turn own(places, "new", 20);
    ASSERT_EQ(places.all().size(), 257U);
    EXPECT_EQ(shared.stall.place, "elsewhere");
    EXPECT_EQ(own.stall.place, "new");
    static_cast<void>(own.end(50ms));
    static_cast<void>(shared.end(18s));
    const auto all = places.all();
    EXPECT_EQ(all[0].longest.duration, 18s);
    EXPECT_EQ(all[1].longest.duration, 50ms);
    for (const detail::stalls_of_place& one : all) {
        EXPECT_EQ(one.lasting, 0U) << one.longest.where;
    }
}

} // namespace
