#include "mock_cluster.hpp"
#include "support/descriptors.hpp"

#include <coil/coil.hpp>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using namespace kafka_test;

namespace {

task<> produce_numbers(const mock_cluster& at, const std::string& topic, int count) {
    kafka::producer p(at.producer());
    for (int i = 0; i < count; ++i) {
        co_await p.send({.topic = topic, .value = std::to_string(i)});
    }
    co_await p.flush();
}

TEST(Kafka, WhatIsProducedIsConsumedInTheOrderOfAPartition) {
    mock_cluster cluster;
    cluster.create("orders", 1);
    coil::run([](mock_cluster& at) -> task<> {
        kafka::producer p(at.producer());
        const kafka::delivery first = co_await p.produce({.topic = "orders", .value = "a"});
        EXPECT_EQ(first.partition, 0);
        const kafka::delivery second =
            co_await p.produce({.topic = "orders", .value = std::string(10'000, 'x'), .key = "k"});
        EXPECT_EQ(second.offset, first.offset + 1);
        EXPECT_EQ(p.outstanding(), 0U);

        kafka::consumer c(at.consumer("g"), {"orders"});
        const kafka::message one = co_await timeout(c.next(), 30s);
        EXPECT_EQ(one.topic, "orders");
        EXPECT_EQ(one.value, "a");
        EXPECT_FALSE(one.key);
        EXPECT_EQ(one.offset, first.offset);
        EXPECT_GT(one.timestamp, 1'000'000'000'000);
        const kafka::message two = co_await timeout(c.next(), 30s);
        EXPECT_EQ(two.value, std::string(10'000, 'x'));
        EXPECT_EQ(two.key, "k");
        co_await c.close();
        EXPECT_THROW(co_await c.next(), kafka::error);
    }(cluster));
}

TEST(Kafka, AGroupContinuesAtTheCommittedOffset) {
    mock_cluster cluster;
    cluster.create("numbers", 1);
    coil::run([](mock_cluster& at) -> task<> {
        co_await produce_numbers(at, "numbers", 20);
        {
            kafka::consumer c(at.consumer("g"), {"numbers"});
            for (int i = 0; i < 5; ++i) {
                const kafka::message m = co_await timeout(c.next(), 30s);
                EXPECT_EQ(m.value, std::to_string(i));
                co_await timeout(c.commit(m), 30s);
            }
            co_await timeout(c.next(), 30s); // not committed
            co_await c.close();
        }
        kafka::consumer c(at.consumer("g"), {"numbers"});
        EXPECT_EQ((co_await timeout(c.next(), 30s)).value, "5");
        co_await c.close();
    }(cluster));
}

TEST(Kafka, OffsetsMayComeFromElsewhere) {
    mock_cluster cluster;
    cluster.create("numbers", 1);
    coil::run([](mock_cluster& at) -> task<> {
        co_await produce_numbers(at, "numbers", 20);
        kafka::consumer c(at.consumer("g"), {"numbers"},
                          [](std::vector<kafka::position>& all) -> task<> {
                              co_await sleep_for(5ms); // stands for a database query
                              for (kafka::position& p : all) {
                                  p.offset = 13;
                              }
                          });
        EXPECT_EQ((co_await timeout(c.next(), 30s)).value, "13");
        EXPECT_EQ(c.assignment().size(), 1U);
        co_await c.close();
    }(cluster));
}

TEST(Kafka, ABrokerDiesAndNothingIsLost) {
    mock_cluster cluster;
    cluster.create("numbers", 1, 3);
    cluster.lead("numbers", 0, 1);
    coil::run([](mock_cluster& at) -> task<> {
        constexpr int count = 2000;
        kafka::producer p(at.producer());
        for (int i = 0; i < count; ++i) {
            if (i == count / 2) {
                co_await p.flush();
                at.kill(1);
                at.lead("numbers", 0, 2);
                at.coordinate("g", 3);
            }
            co_await p.send({.topic = "numbers", .value = std::to_string(i)});
        }
        co_await timeout(p.flush(), 60s);
        kafka::consumer c(at.consumer("g"), {"numbers"});
        for (int i = 0; i < count; ++i) {
            EXPECT_EQ((co_await timeout(c.next(), 60s)).value, std::to_string(i));
        }
        co_await c.close();
    }(cluster));
}

TEST(Kafka, AMessageThatCannotBeDeliveredIsAnErrorWithTheBrokers) {
    mock_cluster cluster(1);
    cluster.create("orders", 1);
    cluster.kill(1);
    coil::run([](mock_cluster& at) -> task<> {
        kafka::config properties = at.producer();
        properties["message.timeout.ms"] = "200";
        kafka::producer p(properties);
        try {
            co_await p.produce({.topic = "orders", .value = "x"});
            ADD_FAILURE() << "delivered";
        } catch (const kafka::error& e) {
            EXPECT_EQ(e.code(), RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
            const std::string what = e.what();
            EXPECT_NE(what.find(at.brokers()), std::string::npos) << what;
            EXPECT_NE(what.find("orders"), std::string::npos) << what;
        }
        co_await p.send({.topic = "orders", .value = "x"});
        EXPECT_THROW(co_await p.flush(), kafka::error);
        co_await p.flush(); // the error has been reported already, so this does not throw
    }(cluster));
}

TEST(Kafka, TheErrorOfAnUnknownPropertyNamesIt) {
    coil::run([]() -> task<> {
        try {
            const kafka::producer p({{"bootstrap.server", "127.0.0.1:1"}});
            ADD_FAILURE() << "accepted";
        } catch (const kafka::error& e) {
            EXPECT_NE(std::string(e.what()).find("bootstrap.server"), std::string::npos)
                << e.what();
        }
        EXPECT_THROW(kafka::consumer({{"bootstrap.servers", "127.0.0.1:1"}}, {"x"}), kafka::error);
        co_return;
    }());
}

kafka::config with_queue_of_ten(mock_cluster& cluster) {
    kafka::config properties = cluster.producer();
    properties["queue.buffering.max.messages"] = "10";
    return properties;
}

TEST(Kafka, SendWaitsWhileTheQueueIsFull) {
    mock_cluster cluster(1);
    cluster.create("numbers", 1);
    cluster.answer_after(1, 20);
    coil::run([](mock_cluster& at) -> task<> {
        kafka::producer p(with_queue_of_ten(at));
        for (int i = 0; i < 100; ++i) {
            co_await p.send({.topic = "numbers", .value = "x"});
            EXPECT_LE(p.outstanding(), 11U);
        }
        co_await timeout(p.flush(), 30s);
        EXPECT_EQ(p.outstanding(), 0U);
    }(cluster));
}

TEST(Kafka, TrySendIsFalseWhileTheQueueIsFull) {
    mock_cluster cluster(1);
    cluster.create("numbers", 1);
    cluster.answer_after(1, 20);
    coil::run([](mock_cluster& at) -> task<> {
        kafka::producer p(with_queue_of_ten(at));
        const kafka::record same{.topic = "numbers", .value = "x"};
        for (int i = 0; i < 10; ++i) {
            EXPECT_TRUE(p.try_send(same));
        }
        EXPECT_EQ(p.outstanding(), 10U);
        EXPECT_FALSE(p.try_send(same));
        EXPECT_EQ(p.outstanding(), 10U);
        co_await timeout(p.flush(), 30s);
        EXPECT_TRUE(p.try_send(same));
        co_await timeout(p.flush(), 30s);
        EXPECT_EQ(p.outstanding(), 0U);
        const kafka::record too_long{.topic = "numbers", .value = std::string(2'000'000, 'x')};
        EXPECT_THROW(static_cast<void>(p.try_send(too_long)), kafka::error);
    }(cluster));
}

TEST(Kafka, ReportsAreReadWhileTrySendNeverSuspends) {
    mock_cluster cluster(1);
    cluster.create("numbers", 1);
    coil::run([](mock_cluster& at) -> task<> {
        kafka::producer p(at.producer());
        const kafka::record same{.topic = "numbers", .value = "x"};
        std::size_t sent = 0;
        const auto end = std::chrono::steady_clock::now() + 30s;
        while (p.outstanding() == sent && std::chrono::steady_clock::now() < end) {
            sent += p.try_send(same) ? 1 : 0;
        }
        EXPECT_LT(p.outstanding(), sent);
        co_await timeout(p.flush(), 30s);
    }(cluster));
}

TEST(Kafka, EveryAwaitCanBeCancelledAtAnyTime) {
    mock_cluster cluster(1);
    cluster.create("numbers", 1);
    cluster.answer_after(1, 3);
    for (auto limit = 0ms; limit < 100ms; limit += limit < 20ms ? 1ms : 7ms) {
        coil::run([](mock_cluster& at, std::chrono::milliseconds after) -> task<> {
            const auto use = [](mock_cluster& cluster_) -> task<> {
                kafka::producer p(cluster_.producer());
                co_await p.produce({.topic = "numbers", .value = "x"});
                co_await p.send({.topic = "numbers", .value = "x"});
                co_await p.flush();
                kafka::consumer c(cluster_.consumer("g"), {"numbers"});
                const kafka::message m = co_await c.next();
                co_await c.commit(m);
            };
            scope work;
            work.spawn(use(at));
            if (after % 2ms == 0ms) {
                co_await sleep_for(after);
                work.cancel();
                co_await work.join();
                co_return;
            }
            try { // the frames are destroyed in the middle
                co_await timeout(work.join(), after);
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::timed_out);
            }
        }(cluster, limit));
    }
}

TEST(Kafka, ACancelledNextLosesNoMessageAndACancelledCommitDoesNotAffectTheNext) {
    mock_cluster cluster(1);
    cluster.create("numbers", 1);
    coil::run([](mock_cluster& at) -> task<> {
        co_await produce_numbers(at, "numbers", 300);
        kafka::consumer c(at.consumer("g"), {"numbers"});
        std::optional<kafka::message> last;
        for (int i = 0; i < 300;) {
            try {
                last = co_await timeout(c.next(), i % 3 == 0 ? 50us : 10ms);
                EXPECT_EQ(last->value, std::to_string(i));
                ++i;
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::timed_out);
            }
        }
        at.answer_after(1, 10);
        for (int i = 0; i < 20; ++i) {
            try {
                co_await timeout(c.commit_positions({{"numbers", 0, i}}), 1ms);
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::timed_out);
            }
        }
        co_await c.commit(*last);
        co_await c.close();
        kafka::consumer again(at.consumer("g"), {"numbers"});
        try {
            co_await timeout(again.next(), 500ms);
            ADD_FAILURE() << "the last commit was lost";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::timed_out);
        }
        co_await again.close();
    }(cluster));
}

std::size_t open_descriptors() { return coil_test::open_descriptors().size(); }

TEST(Kafka, ManyMessagesLeaveNothingBehind) {
    mock_cluster cluster;
    cluster.create("numbers", 4);
    coil::run([](mock_cluster& at) -> task<> {
        co_await produce_numbers(at, "numbers", 1);
        const std::size_t before = open_descriptors();
        const char* const longer = std::getenv("COIL_TEST_LONG");
        const int count = 20'000 * (longer != nullptr ? std::atoi(longer) : 1);
        co_await produce_numbers(at, "numbers", count);
        {
            kafka::consumer c(at.consumer("g"), {"numbers"});
            for (int i = 0; i < count + 1; ++i) {
                co_await timeout(c.next(), 60s);
            }
            co_await c.close();
        }
        for (int i = 0; i < 1000 && open_descriptors() > before; ++i) {
            co_await sleep_for(10ms); // lets the cluster close its side of the connections
        }
        EXPECT_LE(open_descriptors(), before);
    }(cluster));
}

} // namespace
