// Text in JSON is valid UTF-8, whatever bytes names contain.

#include "../../src/context/stall_places.hpp"
#include "../../src/context/task_writing.hpp"
#include "support.hpp"
#include "support/death.hpp"

#include <string>
#include <string_view>

using namespace coil;
using namespace std::string_literals;

namespace {

const std::string replaced = "\xef\xbf\xbd"; // U+FFFD

std::string json_of(std::string_view text) {
    std::string out;
    detail::append_quoted(out, text);
    return out;
}

TEST(Quoted, KeepsUtf8) {
    for (const std::string text :
         {"", "plain", "\xc2\x80 \xdf\xbf", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
          "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf", "a\xe2\x82\xac"}) {
        EXPECT_EQ(json_of(text), '"' + text + '"');
    }
    EXPECT_EQ(json_of("\xc3\xa9\"\\\n\0z"s + "\x1f"), "\"\xc3\xa9\\\"\\\\\\u000a\\u0000z\\u001f\"");
}

TEST(Quoted, ReplacesEachByteThatIsNoUtf8) {
    const auto expect = [](std::string_view text, std::size_t bytes) {
        std::string all = "\"a";
        for (std::size_t i = 0; i < bytes; ++i) {
            all += replaced;
        }
        EXPECT_EQ(json_of("a" + std::string(text)), all + '"');
        EXPECT_EQ(json_of("a" + std::string(text) + "b"), all + "b\"");
        EXPECT_EQ(json_of("a" + std::string(text) + "\xc3\xa9"), all + "\xc3\xa9\"");
    };
    expect("\x80", 1);
    expect("\xff", 1);
    expect("\xc3", 1);
    expect("\xe2\x82", 2);
    expect("\xf0\x9f\x98", 3);
    expect("\xc0\xaf", 2);         // longer than needed
    expect("\xc1\xbf", 2);         // the same
    expect("\xe0\x9f\xbf", 3);     // the same
    expect("\xf0\x8f\xbf\xbf", 4); // the same
    expect("\xed\xa0\x80", 3);     // a surrogate
    expect("\xf4\x90\x80\x80", 4); // above U+10FFFF
    expect("\xf5\x80\x80\x80", 4); // the same
}

TEST(Quoted, StallsAreUtf8) {
    detail::stalls_of_place stalls;
    stalls.longest.task = "half of \xc3";
    stalls.longest.where = "\xe9t\xe9";
    const std::string json = detail::to_json({stalls}, true, 1);
    EXPECT_EQ(coil_test::count_of(json, R"("where":")" + replaced + "t" + replaced + '"'), 1U);
    EXPECT_EQ(coil_test::count_of(json, R"("task":"half of )" + replaced + '"'), 1U);
}

/// The report contains the first 64 bytes of a long name.
TEST(LongNames, AreCutBetweenCharacters) {
    const auto name_in_a_report = [](const std::string& name) {
        const std::string text = coil_test::printed_by_the_death_of([&] {
            io_context ctx;
            ctx.co_spawn(
                []() -> task<> {
                    co_await yield();
                    mutex m;
                    m.unlock();
                }(),
                name);
            ctx.run();
        });
        const auto begin = text.find("task '") + 6;
        return text.substr(begin, text.find('\'', begin) - begin);
    };
    const std::string sixty(60, 'x');
    EXPECT_EQ(name_in_a_report(sixty + "\xe2\x82\xac"), sixty + "\xe2\x82\xac");
    EXPECT_EQ(name_in_a_report(sixty + "123\xc3\xa9"), sixty + "123");
    EXPECT_EQ(name_in_a_report(sixty + "12\xe2\x82\xac"), sixty + "12");
    EXPECT_EQ(name_in_a_report(sixty + "12\xc3\xa9z"), sixty + "12\xc3\xa9");
    EXPECT_EQ(name_in_a_report(sixty + "1\xf0\x9f\x98\x80"), sixty + "1");
    EXPECT_EQ(name_in_a_report(sixty + "\xf0\x9f\x98\x80z"), sixty + "\xf0\x9f\x98\x80");
}

} // namespace
