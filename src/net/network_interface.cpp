#include <coil/context/detail/perform.hpp>
#include <coil/net/network_interface.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <memory>
#include <system_error>

#include <ifaddrs.h>

namespace coil::net {

namespace {

struct list_deleter {
    void operator()(::ifaddrs* list) const noexcept { ::freeifaddrs(list); }
};

/// The number of leading one bits of a network mask.
unsigned prefix_of(const ::sockaddr* mask) noexcept {
    if (mask == nullptr) {
        return 0;
    }
    if (mask->sa_family == AF_INET) {
        const auto bits = reinterpret_cast<const ::sockaddr_in*>(mask)->sin_addr.s_addr;
        return static_cast<unsigned>(std::countl_one(ntohl(bits)));
    }
    unsigned prefix = 0;
    for (const std::uint8_t byte :
         reinterpret_cast<const ::sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
        const auto ones = static_cast<unsigned>(std::countl_one(byte));
        prefix += ones;
        if (ones < 8) {
            break;
        }
    }
    return prefix;
}

::socklen_t size_of_address(int family) noexcept {
    return family == AF_INET ? sizeof(::sockaddr_in) : sizeof(::sockaddr_in6);
}

} // namespace

std::uint32_t network_interface::index_of(std::string_view name) {
    std::array<char, IF_NAMESIZE> text{};
    std::uint32_t index = 0;
    if (name.size() < text.size() && name.find('\0') == std::string_view::npos &&
        coil::detail::current_world() == nullptr) {
        std::ranges::copy(name, text.begin());
        index = ::if_nametoindex(text.data());
    }
    if (index == 0) {
        throw std::system_error(std::make_error_code(std::errc::no_such_device),
                                "coil: network interface \"" + std::string(name) + '"');
    }
    return index;
}

std::string network_interface::name() const {
    std::array<char, IF_NAMESIZE> text{};
    if (coil::detail::current_world() != nullptr ||
        ::if_indextoname(index_, text.data()) == nullptr) {
        return {};
    }
    return text.data();
}

std::vector<interface_info> interfaces() {
    if (coil::detail::current_world() != nullptr) {
        throw std::system_error(std::make_error_code(std::errc::operation_not_supported),
                                "coil: interfaces of a simulated world");
    }
    ::ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        throw std::system_error(errno, std::generic_category(), "coil: getifaddrs");
    }
    const std::unique_ptr<::ifaddrs, list_deleter> list(first);
    std::vector<interface_info> all;
    for (const ::ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
        const std::string_view name = entry->ifa_name;
        auto found = std::ranges::find(all, name, &interface_info::name);
        if (found == all.end()) {
            // 0: it was removed after the list was made, or the name is an alias (a label of an
            // address).
            const network_interface itself(::if_nametoindex(entry->ifa_name));
            if (!itself) {
                continue;
            }
            found = all.insert(
                found, {.interface = itself, .name = std::string(name), .flags = entry->ifa_flags});
        }
        const ::sockaddr* const address = entry->ifa_addr;
        if (address != nullptr &&
            (address->sa_family == AF_INET || address->sa_family == AF_INET6)) {
            found->addresses.push_back(
                {.address = inet_address(address, size_of_address(address->sa_family)),
                 .prefix = prefix_of(entry->ifa_netmask)});
        }
    }
    std::ranges::sort(all, {}, [](const interface_info& i) { return i.interface.index(); });
    return all;
}

} // namespace coil::net
