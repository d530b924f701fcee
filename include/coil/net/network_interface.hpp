#pragma once

#include <coil/net/inet_address.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <net/if.h>

namespace coil::net {

/// A network interface of this machine, identified by its index; netdevice(7). A plain value.
///
///     net::network_interface lan = "eth0";
///     net::network_interface second{2};
///
/// Threading: any thread. The index of an interface that is removed is not used again soon, so a
/// stale value leads to errors (ENODEV) rather than to another interface.
class network_interface {
public:
    /// No interface: Linux chooses one from its routing table.
    network_interface() noexcept = default;
    /// By index; 0 means no interface. The interface need not exist.
    explicit network_interface(std::uint32_t index) noexcept : index_(index) {}
    /// By name: if_nametoindex(3). Throws std::system_error, whose message quotes the name, if
    /// there is no such interface (std::errc::no_such_device), and in a simulated world, where
    /// interfaces have no names.
    template <std::convertible_to<std::string_view> Text>
    network_interface(const Text& name) // NOLINT(google-explicit-constructor)
        : index_(index_of(std::string_view(name))) {}

    /// Whether it refers to an interface: the index is not 0.
    [[nodiscard]] explicit operator bool() const noexcept { return index_ != 0; }
    [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
    /// if_indextoname(3); "" if there is no such interface.
    [[nodiscard]] std::string name() const;

    friend bool operator==(network_interface, network_interface) noexcept = default;

private:
    static std::uint32_t index_of(std::string_view name);

    std::uint32_t index_ = 0;
};

/// An address of an interface.
struct interface_address {
    /// Its port is 0; a link-local IPv6 address has the interface as its scope.
    inet_address address;
    /// The length of the network's prefix in bits: 24 for 192.168.1.5/24.
    unsigned prefix = 0;
};

/// The description of an interface that interfaces() returns.
struct interface_info {
    network_interface interface = {};
    std::string name = {};
    /// IFF_UP, IFF_RUNNING, IFF_LOOPBACK, IFF_MULTICAST, ...: netdevice(7).
    unsigned flags = 0;
    /// IPv4 and IPv6; empty if the interface has no address.
    std::vector<interface_address> addresses = {};

    [[nodiscard]] bool is_up() const noexcept { return (flags & IFF_UP) != 0; }
    [[nodiscard]] bool is_loopback() const noexcept { return (flags & IFF_LOOPBACK) != 0; }
    [[nodiscard]] bool is_multicast() const noexcept { return (flags & IFF_MULTICAST) != 0; }
};

/// The interfaces of this machine with their addresses, in the order of their indexes:
/// getifaddrs(3). A snapshot; it does not wait for the network.
///
///     for (const net::interface_info& i : net::interfaces())
///         std::puts(i.name.c_str());
///
/// Throws std::system_error (EMFILE, ENOBUFS, ...; in a simulated world
/// std::errc::operation_not_supported) and std::bad_alloc. Threading: any thread.
[[nodiscard]] std::vector<interface_info> interfaces();

} // namespace coil::net
