// fs::watch reports changes to files and directories, in order.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Watch : public ::testing::Test {
protected:
    Watch() {
        char name[] = "/tmp/coil-watch-XXXXXX";
        directory = ::mkdtemp(name);
    }
    ~Watch() override { std::filesystem::remove_all(directory); }

    std::filesystem::path directory;
};

task<> expect(fs::watcher& changes, std::uint32_t mask, std::string name) {
    const auto event = co_await changes.next();
    EXPECT_TRUE(event.has_value());
    if (event) {
        EXPECT_EQ(event->mask, mask);
        EXPECT_EQ(event->name, name);
    }
}

TEST_F(Watch, ReportsADirectorysEventsInOrderUntilItIsRemoved) {
    auto main = [](std::filesystem::path d) -> task<> {
        fs::watcher changes = fs::watch(d);
        std::ofstream(d / "a") << "x";
        std::filesystem::rename(d / "a", d / "a much longer name than before");
        std::filesystem::create_directory(d / "sub");
        std::filesystem::remove_all(d);
        co_await expect(changes, IN_CREATE, "a");
        co_await expect(changes, IN_MODIFY, "a");
        co_await expect(changes, IN_CLOSE_WRITE, "a");
        const auto from = co_await changes.next();
        const auto to = co_await changes.next();
        EXPECT_EQ(from->mask, std::uint32_t{IN_MOVED_FROM});
        EXPECT_EQ(to->mask, std::uint32_t{IN_MOVED_TO});
        EXPECT_EQ(to->name, "a much longer name than before");
        EXPECT_NE(from->cookie, 0U);
        EXPECT_EQ(from->cookie, to->cookie);
        co_await expect(changes, IN_CREATE | IN_ISDIR, "sub");
        bool is_removed = false;
        while (auto event = co_await changes.next()) {
            is_removed = is_removed || (event->mask & IN_DELETE_SELF) != 0;
        }
        EXPECT_TRUE(is_removed);
        EXPECT_FALSE((co_await changes.next()).has_value()); // the range stays at its end
    };
    coil::run(main(directory));
}

TEST_F(Watch, ReportsMoreEventsThanOneReadReturns) {
    auto main = [](std::filesystem::path d) -> task<> {
        fs::watcher changes = fs::watch(d, IN_CREATE);
        for (int i = 0; i < 500; ++i) {
            std::ofstream(d / std::to_string(i));
        }
        for (int i = 0; i < 500; ++i) {
            co_await expect(changes, IN_CREATE, std::to_string(i));
        }
    };
    coil::run(main(directory));
}

TEST_F(Watch, NextWaitsForAnEvent) {
    auto main = [](std::filesystem::path d) -> task<> {
        fs::watcher changes = fs::watch(d, IN_CREATE);
        auto later = [](std::filesystem::path p) -> task<> {
            co_await sleep_for(1ms);
            std::ofstream{p};
        };
        co_spawn(later(d / "x"));
        co_await expect(changes, IN_CREATE, "x");
    };
    coil::run(main(directory));
}

TEST_F(Watch, G3_ACancelledNextLosesNothing) {
    auto main = [](std::filesystem::path d) -> task<> {
        fs::watcher changes = fs::watch(d, IN_CREATE);
        auto next = [](fs::watcher& from) -> task<bool> {
            try {
                co_await from.next();
            } catch (const std::system_error& e) {
                co_return e.code() == std::errc::operation_canceled;
            }
            co_return false;
        };
        auto handle = coil::spawn(next(changes));
        co_await yield();
        handle.cancel();
        EXPECT_TRUE(co_await handle);
        std::ofstream(d / "x").close();
        co_await expect(changes, IN_CREATE, "x");
    };
    coil::run(main(directory));
}

TEST_F(Watch, AMissingPathThrowsAnErrorThatNamesIt) {
    const std::set<int> before = coil_test::open_descriptors();
    try {
        const fs::watcher w = fs::watch(directory / "nothing");
        FAIL() << "did not throw";
    } catch (const std::filesystem::filesystem_error& e) {
        EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
        EXPECT_EQ(e.path1(), directory / "nothing");
    }
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

} // namespace
