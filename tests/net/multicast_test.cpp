// Interfaces, multicast groups: on loopback, and between the hosts of a simulated world.

#include "support/run.hpp"

#include <coil/sim/world.hpp>

#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <netinet/in.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view group = "239.255.77.1";
constexpr std::string_view other_group = "239.255.77.2";
constexpr std::uint32_t no_interface = 0x7ffffff0;

net::interface_info loopback() {
    for (const net::interface_info& i : net::interfaces()) {
        if (i.is_loopback()) {
            return i;
        }
    }
    throw std::runtime_error("there is no loopback interface");
}

const_buffer buffer(std::string_view s) { return {s.data(), s.size()}; }

/// Receives a datagram and returns its text.
task<std::string> next(net::socket& s) {
    char buf[64];
    const int n = co_await s.recv(buf);
    EXPECT_GE(n, 0);
    co_return std::string(buf, n < 0 ? 0 : static_cast<std::size_t>(n));
}

task<> send(net::socket& s, std::string_view text, net::endpoint to) {
    EXPECT_EQ(co_await s.send_to(buffer(text), to), static_cast<int>(text.size()));
}

net::socket receiver(std::uint16_t port = 0) {
    net::socket s = net::socket::create_udp();
    s.set_reuse_address(true).value();
    s.bind({"0.0.0.0", port}).value();
    return s;
}

/// A socket that sends to groups on loopback only.
net::socket sender(std::string_view ip = "127.0.0.1") {
    net::socket s = net::socket::create_udp();
    s.bind({ip, 0}).value();
    net::set_multicast(s, {.interface = loopback().interface, .hops = 0}).value();
    return s;
}

template <class T>
T option(const net::socket& s, int level, int name) {
    T value{};
    ::socklen_t length = sizeof value;
    EXPECT_EQ(::getsockopt(s.native_handle(), level, name, &value, &length), 0);
    return value;
}

TEST(Interfaces, LoopbackHasItsNameIndexAndAddress) {
    const net::interface_info lo = loopback();
    EXPECT_TRUE(lo.is_up());
    EXPECT_TRUE(lo.interface);
    EXPECT_EQ(lo.interface.name(), lo.name);
    EXPECT_EQ(net::network_interface(lo.name), lo.interface);
    EXPECT_EQ(net::network_interface(lo.name.c_str()), lo.interface);
    EXPECT_EQ(net::network_interface(lo.interface.index()), lo.interface);
    bool found = false;
    for (const net::interface_address& a : lo.addresses) {
        found = found || (a.address.ip() == "127.0.0.1" && a.prefix == 8);
        if (a.address.ip() == "::1") {
            EXPECT_EQ(a.prefix, 128U);
        }
        EXPECT_EQ(a.address.port(), 0);
    }
    EXPECT_TRUE(found);
}

TEST(Interfaces, EachIsListedOnceInTheOrderOfIndexes) {
    std::uint32_t before = 0;
    for (const net::interface_info& i : net::interfaces()) {
        EXPECT_GT(i.interface.index(), before);
        before = i.interface.index();
        EXPECT_FALSE(i.name.empty());
    }
    EXPECT_GT(before, 0U);
}

TEST(Interfaces, AnUnknownNameIsQuotedInTheError) {
    for (const std::string name : {"coil-none", "", "a name that is longer than one can be"}) {
        try {
            static_cast<void>(net::network_interface(name));
            FAIL() << name;
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::no_such_device);
            EXPECT_NE(std::string_view(e.what()).find('"' + name + '"'), std::string_view::npos);
        }
    }
    EXPECT_FALSE(net::network_interface());
    EXPECT_EQ(net::network_interface().name(), "");
    EXPECT_EQ(net::network_interface(no_interface).name(), "");
}

TEST(Multicast, AMemberReceivesUntilItLeaves) {
    coil::run([]() -> task<> {
        const net::network_interface lo = loopback().interface;
        net::socket member = receiver();
        net::socket from = sender();
        const std::uint16_t port = member.local_endpoint().port();
        EXPECT_EQ(net::join_group(member, {group, 0}, lo), 0);
        co_await send(from, "one", {group, port});
        EXPECT_EQ(co_await next(member), "one");
        EXPECT_EQ(net::leave_group(member, {group, 0}, lo), 0);
        co_await send(from, "two", {group, port});
        co_await send(from, "to it alone", {"127.0.0.1", port});
        EXPECT_EQ(co_await next(member), "to it alone");
    }());
}

TEST(Multicast, ASocketReceivesOnlyTheGroupsItHasJoinedItself) {
    coil::run([]() -> task<> {
        const net::network_interface lo = loopback().interface;
        net::socket a = receiver();
        const std::uint16_t port = a.local_endpoint().port();
        net::socket b = receiver(port);
        EXPECT_EQ(net::join_group(a, {group, 0}, lo), 0);
        EXPECT_EQ(net::join_group(b, {other_group, 0}, lo), 0);
        net::socket from = sender();
        co_await send(from, "first", {group, port});
        co_await send(from, "second", {other_group, port});
        co_await send(from, "third", {group, port});
        EXPECT_EQ(co_await next(a), "first");
        EXPECT_EQ(co_await next(a), "third");
        EXPECT_EQ(co_await next(b), "second");
        // After `b` has joined the first group as well, both sockets receive from it.
        EXPECT_EQ(net::join_group(b, {group, 0}, lo), 0);
        co_await send(from, "fourth", {group, port});
        EXPECT_EQ(co_await next(a), "fourth");
        EXPECT_EQ(co_await next(b), "fourth");
    }());
}

TEST(Multicast, AMemberOfASourceSpecificGroupReceivesOnlyThatSource) {
    coil::run([]() -> task<> {
        const net::network_interface lo = loopback().interface;
        net::socket member = receiver();
        const std::uint16_t port = member.local_endpoint().port();
        net::socket one = sender("127.0.0.1");
        net::socket two = sender("127.0.0.2");
        EXPECT_EQ(net::join_source_group(member, {group, 0}, {"127.0.0.1", 0}, lo), 0);
        co_await send(two, "not asked for", {group, port});
        co_await send(one, "by one", {group, port});
        EXPECT_EQ(co_await next(member), "by one");
        EXPECT_EQ(net::join_source_group(member, {group, 0}, {"127.0.0.2", 0}, lo), 0);
        EXPECT_EQ(net::leave_source_group(member, {group, 0}, {"127.0.0.1", 0}, lo), 0);
        co_await send(one, "left", {group, port});
        co_await send(two, "by two", {group, port});
        EXPECT_EQ(co_await next(member), "by two");
    }());
}

TEST(Multicast, AnIpv6SocketReceivesIpv4Groups) {
    coil::run([]() -> task<> {
        net::socket member = net::socket::create_udp(AF_INET6);
        member.set_v6_only(false).value();
        member.bind({"::", 0}).value();
        EXPECT_EQ(net::join_group(member, {group, 0}, loopback().interface), 0);
        net::socket from = sender();
        co_await send(from, "mapped", {group, member.local_endpoint().port()});
        EXPECT_EQ(co_await next(member), "mapped");
    }());
}

/// Whether the kernel lists an interface as a member of an IPv6 group.
bool is_listed(std::uint32_t index, const std::string& hex) {
    std::ifstream list("/proc/net/igmp6");
    std::uint32_t at = 0;
    std::string name;
    std::string address;
    for (std::string rest; list >> at >> name >> address && std::getline(list, rest);) {
        if (at == index && address == hex) {
            return true;
        }
    }
    return false;
}

TEST(Multicast, Ipv6GroupsAreJoinedAndLeft) {
    const net::network_interface lo = loopback().interface;
    const std::string hex = "ff020000000000000000000000c01177";
    const std::string scoped = "ff02::c0:1177%" + lo.name();
    {
        const net::socket s = net::socket::create_udp(AF_INET6);
        EXPECT_EQ(net::join_group(s, {"ff02::c0:1177", 0}, lo), 0);
        EXPECT_TRUE(is_listed(lo.index(), hex));
        EXPECT_EQ(net::leave_group(s, {scoped, 0}), 0); // the scope is the interface
        EXPECT_FALSE(is_listed(lo.index(), hex));
        EXPECT_EQ(net::join_group(s, {scoped, 0}), 0);
        EXPECT_TRUE(is_listed(lo.index(), hex));
        EXPECT_EQ(net::join_group(s, {scoped, 0}, net::network_interface(no_interface)), -EINVAL);
    }
    EXPECT_FALSE(is_listed(lo.index(), hex)); // closing the socket leaves the group
}

TEST(Multicast, OptionsReachTheSocket) {
    const auto index = static_cast<int>(loopback().interface.index());
    const net::socket s = net::socket::create_udp(AF_INET6);
    EXPECT_EQ(net::set_multicast(s, {.interface = loopback().interface, .hops = 7, .loop = false}),
              0);
    EXPECT_EQ(option<int>(s, IPPROTO_IPV6, IPV6_MULTICAST_IF), index);
    EXPECT_EQ(option<int>(s, IPPROTO_IPV6, IPV6_MULTICAST_HOPS), 7);
    EXPECT_EQ(option<int>(s, IPPROTO_IPV6, IPV6_MULTICAST_LOOP), 0);
    EXPECT_EQ(option<int>(s, IPPROTO_IP, IP_MULTICAST_TTL), 7);
    EXPECT_EQ(option<int>(s, IPPROTO_IP, IP_MULTICAST_LOOP), 0);
    EXPECT_EQ(net::set_multicast(s, {.hops = 255}), 0);
    EXPECT_EQ(option<int>(s, IPPROTO_IPV6, IPV6_MULTICAST_IF), index); // it is left as it was
    EXPECT_EQ(option<int>(s, IPPROTO_IPV6, IPV6_MULTICAST_HOPS), 255);
    EXPECT_EQ(net::set_multicast(s, {.interface = net::network_interface(), .loop = true}), 0);
    EXPECT_EQ(option<int>(s, IPPROTO_IPV6, IPV6_MULTICAST_IF), 0);
    EXPECT_EQ(option<int>(s, IPPROTO_IPV6, IPV6_MULTICAST_LOOP), 1);
    EXPECT_EQ(net::set_multicast(s, {.hops = 256}), -EINVAL);
    EXPECT_EQ(net::set_multicast(s, {.hops = -1}), -EINVAL);
    EXPECT_EQ(net::set_multicast(s, {.interface = net::network_interface(no_interface)}), -ENODEV);
    EXPECT_EQ(net::set_multicast(net::socket::create_unix(), {.hops = 1}), -EAFNOSUPPORT);
    EXPECT_EQ(net::set_multicast(net::socket(), {.hops = 1}), -EBADF);
}

/// The errors are the same in a simulated world.
task<> check_errors(std::string_view group, std::string_view a, std::string_view b) {
    const net::endpoint any(group, 0);
    const net::endpoint one(a, 0);
    const net::endpoint two(b, 0);
    const net::network_interface first(
        1); // exists in a world; on a real host it is usually loopback
    const int family = any.family();
    const net::socket s = net::socket::create_udp(family);
    EXPECT_EQ(net::join_group(s, one, first), -EINVAL); // not a group
    EXPECT_EQ(net::join_group(s, any, net::network_interface(no_interface)), -ENODEV);
    EXPECT_EQ(net::join_group(s, net::unix_address("x")), -EAFNOSUPPORT);
    EXPECT_EQ(net::leave_group(s, any, first), -EADDRNOTAVAIL);
    EXPECT_EQ(net::join_group(s, any, first), 0);
    EXPECT_EQ(net::join_group(s, any, first), -EADDRINUSE);
    EXPECT_EQ(net::join_source_group(s, any, one, first), 0); // in place of all sources
    EXPECT_EQ(net::leave_source_group(s, any, one, first), 0);
    EXPECT_EQ(net::leave_group(s, any, first), -EADDRNOTAVAIL); // it was the only source
    EXPECT_EQ(net::join_group(s, any, first), 0);
    EXPECT_EQ(net::leave_source_group(s, any, one, first), -EADDRNOTAVAIL);
    EXPECT_EQ(net::leave_group(s, any, first), 0);
    EXPECT_EQ(net::leave_source_group(s, any, one, first), -EINVAL);
    EXPECT_EQ(net::join_source_group(s, any, one, first), 0);
    EXPECT_EQ(net::join_group(s, any, first), -EADDRINUSE);
    EXPECT_EQ(net::leave_source_group(s, any, two, first), -EADDRNOTAVAIL);
    EXPECT_EQ(net::join_source_group(s, any, two, first), 0);
    EXPECT_EQ(net::leave_group(s, any, first), 0); // all its sources
    EXPECT_EQ(net::leave_group(s, any, first), -EADDRNOTAVAIL);
    const net::endpoint foreign(family == AF_INET ? "::1" : "127.0.0.1", 0);
    EXPECT_EQ(net::join_source_group(s, any, foreign, first), -EINVAL);
    EXPECT_EQ(net::join_source_group(s, any, net::unix_address("x"), first), -EAFNOSUPPORT);
    co_return;
}

TEST(Multicast, Errors) {
    coil::run(check_errors(group, "127.0.0.1", "127.0.0.2"));
    coil::run(check_errors("ff02::c0:1177", "fd00::1", "fd00::2"));
    sim::world w{1};
    auto v4 = w.host("a").spawn(check_errors(group, "10.0.0.1", "10.0.0.2"));
    auto v6 = w.host("a").spawn(check_errors("ff02::c0:1177", "fd00::1", "fd00::2"));
    w.run();
    EXPECT_TRUE(v4.done() && v6.done());
}

// ---- in a simulated world

constexpr std::uint16_t port = 5000;

struct group_case {
    const char* any;
    const char* group;
};
constexpr group_case families[] = {{"0.0.0.0", "239.1.2.3"}, {"::", "ff02::123"}};

/// Joins and collects what it receives until it is destroyed with its world.
task<> collect(group_case family, std::vector<std::string>& got) {
    net::socket s = net::socket::create_udp(net::endpoint(family.any, 0).family());
    s.set_reuse_address(true).value();
    s.bind({family.any, port}).value();
    net::join_group(s, {family.group, 0}).value();
    for (;;) {
        got.push_back(co_await next(s));
    }
}

task<> tell(group_case family, std::string text, net::multicast_options options = {}) {
    net::socket s = net::socket::create_udp(net::endpoint(family.any, 0).family());
    net::set_multicast(s, options).value();
    co_await send(s, text, {family.group, port});
}

using texts = std::vector<std::string>;

TEST(SimMulticast, MembersOnAllHostsReceive) {
    for (const group_case family : families) {
        texts a;
        texts b;
        texts b2;
        sim::world w{1};
        w.host("c");
        w.host("a").co_spawn(collect(family, a));
        w.host("b").co_spawn(collect(family, b));
        w.host("b").co_spawn(collect(family, b2));
        w.run();
        w.host("a").co_spawn(tell(family, "all"));
        w.run();
        w.host("a").co_spawn(tell(family, "own host", {.hops = 0}));
        w.run();
        w.host("a").co_spawn(tell(family, "others", {.loop = false}));
        w.run();
        EXPECT_EQ(a, (texts{"all", "own host"}));
        EXPECT_EQ(b, (texts{"all", "others"}));
        EXPECT_EQ(b2, b);
    }
}

TEST(SimMulticast, APartitionAndACrashSeparateMembers) {
    const group_case family = families[0];
    texts b;
    texts c;
    sim::world w{1};
    sim::host& from = w.host("a");
    w.host("b").co_spawn(collect(family, b));
    w.host("c").co_spawn(collect(family, c));
    w.run();
    w.partition(from, w.host("b"));
    from.co_spawn(tell(family, "1"));
    w.run();
    w.heal(from, w.host("b"));
    w.host("c").crash();
    from.co_spawn(tell(family, "2"));
    w.run();
    w.host("c").restart();
    from.co_spawn(tell(family, "3"));
    w.run();
    EXPECT_EQ(b, (texts{"2", "3"}));
    EXPECT_EQ(c, (texts{"1"})); // a restarted host has no members
}

TEST(SimMulticast, ASourceThatWasNotJoinedIsNotReceived) {
    const group_case family = families[0];
    texts got;
    sim::world w{1};
    sim::host& a = w.host("a");
    sim::host& b = w.host("b");
    const auto member = [](net::endpoint source, texts& got) -> task<> {
        net::socket s = net::socket::create_udp();
        s.bind({families[0].group, port}).value();
        net::join_source_group(s, {families[0].group, 0}, source).value();
        for (;;) {
            got.push_back(co_await next(s));
        }
    };
    w.host("c").co_spawn(member(b.address(0), got));
    w.run();
    a.co_spawn(tell(family, "a"));
    b.co_spawn(tell(family, "b"));
    w.run();
    EXPECT_EQ(got, (texts{"b"}));
}

TEST(SimMulticast, AWorldDoesNotShowTheInterfacesOfTheMachine) {
    const std::string name = loopback().name;
    sim::world w{1};
    auto done = w.host("a").spawn([](std::string name) -> task<> {
        EXPECT_THROW(static_cast<void>(net::interfaces()), std::system_error);
        EXPECT_THROW(static_cast<void>(net::network_interface(name)), std::system_error);
        EXPECT_EQ(net::network_interface(1).name(), "");
        co_return;
    }(name));
    w.run();
    EXPECT_TRUE(done.done());
}

} // namespace
