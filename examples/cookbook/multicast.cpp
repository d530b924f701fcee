// Multicast: each member of a group receives what is sent to the group's address.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;

/// The loopback interface. For a real network use an interface by its name, such as "eth0".
net::network_interface loopback() {
    for (const net::interface_info& i : net::interfaces()) {
        if (i.is_loopback()) {
            return i.interface;
        }
    }
    return {};
}

task<> listen(net::socket& member, const char* name) {
    char buf[1500];
    auto [n, from] = co_await member.recv_from(buf);
    std::printf("%s: %.*s\n", name, static_cast<int>(n), buf);
}

task<> co_main() {
    const char* const group = "239.255.0.1"; // 239.x.y.z: for private use
    net::socket a = net::socket::create_udp(), b = net::socket::create_udp();
    a.set_reuse_address(true).value(); // several programs may listen on the port
    b.set_reuse_address(true).value();
    a.bind({group, 0}).value();
    b.bind(a.local_endpoint()).value();
    net::join_group(a, {group, 0}, loopback()).value();
    net::join_group(b, {group, 0}, loopback()).value();
    net::socket sender = net::socket::create_udp();
    net::set_multicast(sender, {.interface = loopback(), .hops = 1}).value();
    co_await sender.send_to("hello", a.local_endpoint());
    co_await listen(a, "a");
    co_await listen(b, "b");
}

int main() { coil::run(co_main()); }
