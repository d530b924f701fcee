// net::acceptor: listening, accepting, and errors.

#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <sys/resource.h>

using namespace coil;
using namespace std::chrono_literals;
using net::acceptor;
using net::inet_address;

namespace {

class Acceptor : public ::testing::Test {};

TEST_F(Acceptor, PortZeroGetsAFreePortAndReportsIt) {
    const acceptor ac{inet_address{"127.0.0.1", 0}};
    EXPECT_NE(ac.local_address().port(), 0);
    EXPECT_EQ(ac.local_address().ip(), "127.0.0.1");
    EXPECT_GE(ac.native_handle(), 0);
}

TEST_F(Acceptor, APortOrATextNamesTheAddress) {
    const acceptor any(0);
    EXPECT_EQ(any.local_address().ip(), "0.0.0.0");
    const std::uint16_t port = any.local_address().port();
    EXPECT_NE(port, 0);
    EXPECT_THROW(acceptor{port}, std::system_error); // the same port is in use
    const acceptor text("127.0.0.1:0");
    EXPECT_EQ(text.local_address().ip(), "127.0.0.1");
    const acceptor all("0.0.0.0:0", {.backlog = 1});
    EXPECT_EQ(all.local_address().ip(), "0.0.0.0");
}

TEST_F(Acceptor, PrefersAProcessor) {
    const auto preference = [](const acceptor& ac) {
        int processor = 0;
        ::socklen_t size = sizeof processor;
        EXPECT_EQ(::getsockopt(ac.native_handle(), SOL_SOCKET, SO_INCOMING_CPU, &processor, &size),
                  0);
        return processor;
    };
    EXPECT_EQ(preference(acceptor("127.0.0.1:0")), -1);
    EXPECT_EQ(preference(acceptor("127.0.0.1:0", {.incoming_cpu = 3})), 3);
    // A preference may name a processor that does not exist.
    EXPECT_EQ(preference(acceptor("127.0.0.1:0", {.reuse_port = true, .incoming_cpu = 4000})),
              4000);
}

TEST_F(Acceptor, APortInUseThrowsAndNamesTheAddress) {
    const acceptor first{inet_address{"127.0.0.1", 0}};
    const inet_address taken = first.local_address();
    try {
        const acceptor second{taken};
        FAIL() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::address_in_use);
        EXPECT_NE(std::string(e.what()).find(taken.to_string()), std::string::npos) << e.what();
    }
}

TEST_F(Acceptor, ANonLocalAddressThrowsAndNamesIt) {
    try {
        const acceptor ac{inet_address{"192.0.2.1", 1}};
        FAIL() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::address_not_available);
        EXPECT_NE(std::string(e.what()).find("192.0.2.1:1"), std::string::npos) << e.what();
    }
}

TEST_F(Acceptor, ReusesAnAddressWhoseConnectionsLinger) {
    inet_address address;
    auto main = [](inet_address& a) -> task<> {
        acceptor ac{inet_address{"127.0.0.1", 0}};
        a = ac.local_address();
        net::socket client = net::socket::create_tcp();
        EXPECT_EQ(co_await client.connect(a), 0);
        net::socket server = co_await ac.accept();
        // The server closes first, so its end goes through TIME_WAIT.
        EXPECT_EQ(co_await server.close(), 0);
        char c;
        EXPECT_EQ((co_await client.recv({&c, 1})), 0);
    };
    coil::run(main(address));
    const acceptor again{address};
}

TEST_F(Acceptor, ReusePortSharesIt) {
    net::acceptor_options shared;
    shared.reuse_port = true;
    const acceptor first{inet_address{"127.0.0.1", 0}, shared};
    const acceptor second{first.local_address(), shared};
    EXPECT_EQ(first.local_address(), second.local_address());
    EXPECT_THROW(acceptor{first.local_address()}, std::system_error);
}

TEST_F(Acceptor, AcceptsOverIPv6AndReportsThePeer) {
    auto main = []() -> task<> {
        acceptor ac{inet_address{"::1", 0}};
        net::socket client = net::socket::create_tcp(AF_INET6);
        EXPECT_EQ(co_await client.connect(ac.local_address()), 0);
        net::socket server = co_await ac.accept();
        EXPECT_TRUE(server);
        EXPECT_EQ(server.peer_address(), client.local_address());
        EXPECT_EQ(server.local_address(), ac.local_address());
        EXPECT_EQ(::fcntl(server.native_handle(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    };
    coil::run(main());
}

TEST_F(Acceptor, G3_CancelledGivesASocketWithTheError) {
    auto accepts = [](acceptor& ac) -> task<net::socket> { co_return co_await ac.accept(); };
    auto main = [](auto f) -> task<> {
        acceptor ac{inet_address{"127.0.0.1", 0}};
        auto h = coil::spawn(f(ac));
        co_await sleep_for(1ms);
        h.cancel();
        const net::socket s = co_await h;
        EXPECT_FALSE(s);
        EXPECT_EQ(s.error(), std::errc::operation_canceled);
    };
    coil::run(main(accepts));
}

TEST_F(Acceptor, AConnectionThatWasResetBeforeItIsAcceptedIsNotAnError) {
    auto main = []() -> task<> {
        acceptor ac{inet_address{"127.0.0.1", 0}};
        {
            net::socket client = net::socket::create_tcp();
            EXPECT_EQ(co_await client.connect(ac.local_address()), 0);
            EXPECT_EQ(client.set_linger(0s), 0);
        }
        net::socket second = net::socket::create_tcp();
        EXPECT_EQ(co_await second.connect(ac.local_address()), 0);
        // Linux accepts the reset connection; other systems skip it.
        net::socket a = co_await ac.accept();
        EXPECT_TRUE(a);
    };
    coil::run(main());
}

TEST_F(Acceptor, G6_WithoutDescriptorsItWaitsAndRecovers) {
    auto main = []() -> task<> {
        acceptor ac{inet_address{"127.0.0.1", 0}};
        net::socket client = net::socket::create_tcp();
        EXPECT_EQ(co_await client.connect(ac.local_address()), 0);

        ::rlimit before{};
        ::getrlimit(RLIMIT_NOFILE, &before);
        const ::rlimit none{3, before.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);

        auto accepts = [](acceptor& a) -> task<net::socket> { co_return co_await a.accept(); };
        auto handle = coil::spawn(accepts(ac));
        co_await sleep_for(30ms);
        EXPECT_FALSE(handle.done()); // EMFILE is not the end of a server

        ::setrlimit(RLIMIT_NOFILE, &before);
        const net::socket s = co_await handle;
        EXPECT_TRUE(s);
    };
    coil::run(main());
}

TEST_F(Acceptor, G6_WithoutDescriptorsItDoesNotSpin) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitizers change the costs";
    }
    auto main = []() -> task<> {
        acceptor ac{inet_address{"127.0.0.1", 0}};
        net::socket client = net::socket::create_tcp();
        EXPECT_EQ(co_await client.connect(ac.local_address()), 0);
        ::rlimit before{};
        ::getrlimit(RLIMIT_NOFILE, &before);
        const ::rlimit none{3, before.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
        auto accepts = [](acceptor& a) -> task<net::socket> { co_return co_await a.accept(); };
        auto handle = coil::spawn(accepts(ac));
        const auto begin = coil_test::cpu_time();
        co_await sleep_for(200ms);
        EXPECT_LT(coil_test::cpu_time() - begin, 20ms);
        handle.cancel();
        const net::socket s = co_await handle;
        EXPECT_EQ(s.error(), std::errc::operation_canceled); // cancelled while it pauses
        ::setrlimit(RLIMIT_NOFILE, &before);
    };
    coil::run(main());
}

TEST_F(Acceptor, ErrorsOfOneConnectionAreSkipped_OthersEndIt) {
    // accept(2) returns pending errors of the new connection; they do not concern the listener.
    auto script = std::make_shared<coil_test::scripted_backend::script>();
    std::vector<int> answers;
    script->on_submit = [&](const coil_test::sqe& e) {
        if (e.opcode == static_cast<std::uint8_t>(uring::opcode::accept)) {
            script->post(e.user_data, answers.front());
            answers.erase(answers.begin());
        }
    };
    io_context ctx(coil_test::with([&](auto& o) {
        o.make_backend = coil_test::scripted_backend::factory(script);
        o.idle = idle_policy::park();
    }));
    auto main = []() -> task<net::socket> {
        acceptor ac{inet_address{"127.0.0.1", 0}};
        co_return co_await ac.accept();
    };
    answers = {-ECONNABORTED, -EPROTO, -EINTR, -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM, -EINVAL};
    const net::socket s = coil_test::run_on(ctx, main());
    EXPECT_FALSE(s);
    EXPECT_EQ(s.error(), std::errc::invalid_argument);
    EXPECT_TRUE(answers.empty());
}

TEST_F(Acceptor, FiveHundredClientsAtOnce) {
    int served = 0;
    auto session = [](net::socket s, int& n) -> task<> {
        char c;
        EXPECT_EQ((co_await s.recv({&c, 1})), 1);
        EXPECT_EQ((co_await s.send({&c, 1})), 1);
        ++n;
    };
    auto server = [](acceptor& ac, auto f, int& n, int all) -> task<> {
        for (int i = 0; i < all; ++i) {
            coil::co_spawn(f(co_await ac.accept(), n));
        }
    };
    auto client = [](inet_address address) -> task<> {
        net::socket s = net::socket::create_tcp();
        EXPECT_EQ(co_await s.connect(address), 0);
        char c = 'x';
        EXPECT_EQ((co_await (s.send({&c, 1}) && s.recv({&c, 1}))), 1);
    };
    io_context ctx(32);
    acceptor ac{inet_address{"127.0.0.1", 0}};
    ctx.co_spawn(server(ac, session, served, 500));
    for (int i = 0; i < 500; ++i) {
        ctx.co_spawn(client(ac.local_address()));
    }
    ctx.run();
    EXPECT_EQ(served, 500);
}

} // namespace
