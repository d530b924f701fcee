// Requests to stop a loop, and a loop's sleep between two turns.

#include <coil/context/detail/driver_link.hpp>
#include <coil/context/detail/inbox.hpp>
#include <coil/context/detail/loop_signals.hpp>
#include <coil/context/detail/sim_driver.hpp>
#include <coil/context/detail/stop_requests.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace coil::detail;

TEST(StopRequests, ARequestOfTheOwnerTakesEffectAtOnce) {
    stop_requests stop;
    EXPECT_FALSE(stop.requested());
    stop.request();
    EXPECT_TRUE(stop.requested());
    stop.complete();
    EXPECT_FALSE(stop.requested());
}

TEST(StopRequests, ARequestOfAnotherThreadTakesEffectOnDelivery) {
    stop_requests stop;
    stop_request word;
    ASSERT_TRUE(word.make());
    EXPECT_FALSE(word.make()); // its message is not delivered yet
    EXPECT_FALSE(stop.requested());
    stop.deliver(word);
    EXPECT_TRUE(stop.requested());
    EXPECT_TRUE(word.make()); // it may be posted again
}

TEST(StopRequests, AForgottenRequestHasNoEffect) {
    stop_requests stop;
    stop_request word;
    ASSERT_TRUE(word.make());
    word.forget();
    stop.deliver(word);
    EXPECT_FALSE(stop.requested());
}

TEST(StopRequests, AForgottenRequestDoesNotRevokeTheOwners) {
    stop_requests stop;
    stop_request word;
    ASSERT_TRUE(word.make());
    word.forget();
    stop.request();
    stop.deliver(word);
    EXPECT_TRUE(stop.requested());
}

TEST(StopRequests, ARequestDeliveredDuringAServiceStopsTheNextRun) {
    stop_requests stop;
    stop_request word;
    ASSERT_TRUE(word.make());
    stop.begin_service();
    stop.deliver(word);
    stop.end_service();
    EXPECT_FALSE(stop.requested());
    stop.begin_run(word);
    EXPECT_TRUE(stop.requested());
}

TEST(StopRequests, ARequestForgottenAfterAServiceHasNoEffect) {
    stop_requests stop;
    stop_request word;
    ASSERT_TRUE(word.make());
    stop.begin_service();
    stop.deliver(word);
    stop.end_service();
    word.forget();
    stop.begin_run(word);
    EXPECT_FALSE(stop.requested());
}

struct no_driver final : sim_driver {
    void run_later(queue_node&, void (*)(queue_node&)) override {}
    bool take_back(queue_node&) noexcept override { return false; }
    void let_others_act() noexcept override {}
    void wake(event_loop&) noexcept override {}
    void run_others_until_message(event_loop&) noexcept override {}
    std::vector<std::string> addresses_of(const std::string&) override { return {}; }
};

TEST(DriverLink, AMessageBeforeTheSleepPreventsIt) {
    no_driver driver;
    inbox box;
    driver_link link;
    link.begin(driver);
    queue_node node;
    EXPECT_FALSE(box.push(node)); // the loop does not sleep
    EXPECT_FALSE(link.fall_asleep(box));
    EXPECT_FALSE(link.is_asleep());
    EXPECT_FALSE(link.wake_up(box));
    EXPECT_EQ(box.take_all(), &node);
    link.end();
}

TEST(DriverLink, AMessageDuringTheSleepEndsIt) {
    no_driver driver;
    inbox box;
    driver_link link;
    link.begin(driver);
    EXPECT_TRUE(link.fall_asleep(box));
    queue_node node;
    EXPECT_TRUE(box.push(node)); // the sender calls sim_driver::wake()
    EXPECT_TRUE(link.wake_up(box));
    EXPECT_FALSE(link.is_asleep());
    link.end();
    EXPECT_EQ(link.get(), nullptr);
}

TEST(DriverLink, ATurnEndsTheSleepWithoutAMessage) {
    no_driver driver;
    inbox box;
    driver_link link;
    link.begin(driver);
    EXPECT_TRUE(link.fall_asleep(box));
    EXPECT_FALSE(link.wake_up(box));
    EXPECT_TRUE(box.empty());
    link.end();
}

} // namespace
