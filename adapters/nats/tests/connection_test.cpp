#include "nats_server.hpp"
#include "support/descriptors.hpp"

#include <coil/coil.hpp>

#include <optional>
#include <set>
#include <string>

using namespace coil;
using namespace std::chrono_literals;
using namespace nats_test;

namespace {

task<nats::connection> connect(std::uint16_t port) {
    co_return co_await nats::connection::connect({.servers = {address(port)}});
}

TEST(Nats, AMessageReachesItsSubscribers) {
    NEEDS_NATS_SERVER();
    const server s;
    coil::run([](std::uint16_t port) -> task<> {
        nats::connection a = co_await connect(port);
        nats::connection b = co_await connect(port);
        nats::subscription all = co_await a.subscribe("greet.>");
        nats::subscription joe = co_await a.subscribe("greet.*");
        co_await a.flush();
        co_await b.publish("greet.joe", "hello", "answers.here");
        co_await b.publish("greet.ann.again", std::string(100'000, 'x'));

        std::optional<nats::message> m = co_await all.next();
        EXPECT_EQ(m->subject, "greet.joe");
        EXPECT_EQ(m->payload, "hello");
        EXPECT_EQ(m->reply_to, "answers.here");
        EXPECT_EQ((co_await all.next())->payload.size(), 100'000U);
        EXPECT_EQ((co_await joe.next())->payload, "hello");
        joe.unsubscribe();
        EXPECT_FALSE(co_await joe.next());
        EXPECT_FALSE(co_await joe.next());
    }(s.port()));
}

TEST(Nats, AQueueDeliversEachMessageOnce) {
    NEEDS_NATS_SERVER();
    const server s;
    coil::run([](std::uint16_t port) -> task<> {
        nats::connection c = co_await connect(port);
        nats::subscription one = co_await c.subscribe("jobs", "workers");
        nats::subscription two = co_await c.subscribe("jobs", "workers");
        for (int i = 0; i < 100; ++i) {
            co_await c.publish("jobs", std::to_string(i));
        }
        co_await c.drain();
        int received = 0;
        while (co_await one.next()) {
            ++received;
        }
        while (co_await two.next()) {
            ++received;
        }
        EXPECT_EQ(received, 100);
        EXPECT_THROW(co_await c.publish("jobs", ""), nats::error);
    }(s.port()));
}

task<> echo(nats::connection& c, nats::subscription requests) {
    while (std::optional<nats::message> m = co_await requests.next()) {
        co_await c.publish(m->reply_to, "you said " + m->payload);
    }
}

TEST(Nats, RequestsAreAnsweredInAnyOrder) {
    NEEDS_NATS_SERVER();
    const server s;
    coil::run([](std::uint16_t port) -> task<> {
        nats::connection service = co_await connect(port);
        nats::connection client = co_await connect(port);
        scope work;
        work.spawn(echo(service, co_await service.subscribe("echo")));
        co_await service.flush();
        const auto ask = [](nats::connection& c, int i) -> task<std::string> {
            co_return (co_await c.request("echo", std::to_string(i), 10s)).payload;
        };
        std::vector<task<std::string>> all;
        for (int i = 0; i < 200; ++i) {
            all.push_back(ask(client, i));
        }
        const std::vector<std::string> answers = co_await when_all(std::move(all));
        for (int i = 0; i < 200; ++i) {
            EXPECT_EQ(answers[static_cast<std::size_t>(i)], "you said " + std::to_string(i));
        }
        work.cancel();
        co_await work.join();
    }(s.port()));
}

TEST(Nats, ARequestWithoutAnAnswerEnds) {
    NEEDS_NATS_SERVER();
    const server s;
    coil::run([](std::uint16_t port) -> task<> {
        nats::connection c = co_await connect(port);
        try {
            co_await c.request("nothing.there", "", 10s);
            ADD_FAILURE() << "no error";
        } catch (const nats::error& e) {
            EXPECT_EQ(e.why(), nats::error::kind::no_responders);
            EXPECT_NE(std::string(e.what()).find(address(port)), std::string::npos) << e.what();
        }
        const nats::subscription silent = co_await c.subscribe("silent");
        try {
            co_await c.request("silent", "", 20ms);
            ADD_FAILURE() << "no error";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::timed_out);
        }
    }(s.port()));
}

TEST(Nats, WhatTheProtocolDoesNotAllowIsRefusedBeforeItIsSent) {
    NEEDS_NATS_SERVER();
    const server s;
    coil::run([](std::uint16_t port) -> task<> {
        nats::connection c = co_await connect(port);
        for (const char* subject : {"", "a b", "a..b", ".a", "a.", "a.*", "a.>", "a\r\nb"}) {
            EXPECT_THROW(co_await c.publish(subject, ""), nats::error) << subject;
        }
        for (const char* subject : {"", "a b", "a.>.b", "a..*"}) {
            EXPECT_THROW(co_await c.subscribe(subject), nats::error) << subject;
        }
        EXPECT_THROW(co_await c.publish("a", std::string((1 << 20) + 1, 'x')), nats::error);
        co_await c.publish("a", std::string(1 << 20, 'x'));
        co_await c.flush(); // the connection still works
    }(s.port()));
}

TEST(Nats, CredentialsAreSentAndARefusalNamesTheServer) {
    NEEDS_NATS_SERVER();
    const server s({"--user", "joe", "--pass", "se\"cret\\"});
    coil::run([](std::uint16_t port) -> task<> {
        const nats::connection good = co_await nats::connection::connect(
            {.servers = {address(port)}, .user = "joe", .password = "se\"cret\\"});
        EXPECT_TRUE(good.is_connected());
        EXPECT_EQ(good.server(), address(port));
        try {
            co_await nats::connection::connect({.servers = {address(port)}, .user = "joe"});
            ADD_FAILURE() << "no error";
        } catch (const nats::error& e) {
            EXPECT_EQ(e.why(), nats::error::kind::connection);
            const std::string what = e.what();
            EXPECT_NE(what.find(address(port)), std::string::npos) << what;
            EXPECT_NE(what.find("Authorization"), std::string::npos) << what;
        }
    }(s.port()));
}

TEST(Nats, AFailedConnectNamesEachServer) {
    const std::uint16_t port = free_port();
    coil::run([](std::uint16_t at) -> task<> {
        try {
            co_await nats::connection::connect({.servers = {address(at), "no port:x"}});
            ADD_FAILURE() << "no error";
        } catch (const nats::error& e) {
            const std::string what = e.what();
            EXPECT_NE(what.find(address(at)), std::string::npos) << what;
            EXPECT_NE(what.find("no port:x"), std::string::npos) << what;
        }
    }(port));
}

TEST(Nats, ASlowSubscriberLosesMessagesAndCountsThem) {
    NEEDS_NATS_SERVER();
    const server s;
    coil::run([](std::uint16_t port) -> task<> {
        nats::connection c =
            co_await nats::connection::connect({.servers = {address(port)}, .max_pending = 10});
        nats::subscription slow = co_await c.subscribe("flood");
        for (int i = 0; i < 25; ++i) {
            co_await c.publish("flood", std::to_string(i));
        }
        co_await c.flush();
        EXPECT_EQ(slow.dropped(), 15U);
        for (int i = 0; i < 10; ++i) {
            EXPECT_EQ((co_await slow.next())->payload, std::to_string(i));
        }
    }(s.port()));
}

TEST(Nats, ManyMessagesAndConnectionsLeaveNothingBehind) {
    NEEDS_NATS_SERVER();
    const server s;
    coil::run([](std::uint16_t port) -> task<> {
        co_await connect(port);
        const std::set<int> before = coil_test::open_descriptors();
        for (int i = 0; i < 50; ++i) {
            nats::connection c = co_await connect(port);
            const nats::subscription x = co_await c.subscribe("x");
        }
        EXPECT_EQ(coil_test::open_descriptors(), before);

        nats::connection c = co_await connect(port);
        nats::subscription numbers = co_await c.subscribe("numbers");
        constexpr int count = 100'000;
        scope work;
        work.spawn([](nats::connection& to) -> task<> {
            for (int i = 0; i < count; ++i) {
                co_await to.publish("numbers", std::to_string(i));
            }
        }(c));
        for (int i = 0; i < count; ++i) {
            const std::optional<nats::message> m = co_await numbers.next();
            if (m->payload != std::to_string(i)) {
                ADD_FAILURE() << m->payload << " instead of " << i;
                break;
            }
        }
        co_await work.join();
        EXPECT_EQ(numbers.dropped(), 0U);
    }(s.port()));
}

} // namespace
