#include "descriptor_target.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace coil::detail {

namespace {

template <class T>
T option_of(int fd, int level, int name, T otherwise) noexcept {
    T value{};
    ::socklen_t size = sizeof value;
    return ::getsockopt(fd, level, name, &value, &size) == 0 ? value : otherwise;
}

std::string inet_text(int family, const void* address, std::uint16_t port) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(family, address, text.data(), text.size());
    const std::string host =
        family == AF_INET6 ? '[' + std::string(text.data()) + ']' : text.data();
    return host + ':' + std::to_string(ntohs(port));
}

/// Empty for a Unix socket without a name, and for other families.
std::string address_text(const ::sockaddr_storage& address, ::socklen_t size) {
    switch (address.ss_family) {
    case AF_INET: {
        const auto& inet = reinterpret_cast<const ::sockaddr_in&>(address);
        return inet_text(AF_INET, &inet.sin_addr, inet.sin_port);
    }
    case AF_INET6: {
        const auto& inet = reinterpret_cast<const ::sockaddr_in6&>(address);
        return inet_text(AF_INET6, &inet.sin6_addr, inet.sin6_port);
    }
    case AF_UNIX: {
        const auto& local = reinterpret_cast<const ::sockaddr_un&>(address);
        const std::size_t length = size - offsetof(::sockaddr_un, sun_path);
        if (size <= offsetof(::sockaddr_un, sun_path)) {
            return {};
        }
        if (local.sun_path[0] == '\0') { // an abstract name
            return "unix:@" + std::string(local.sun_path + 1, length - 1);
        }
        return "unix:" + std::string(local.sun_path, ::strnlen(local.sun_path, length));
    }
    default:
        return {};
    }
}

double idle_seconds(int fd) noexcept {
    ::tcp_info info{};
    ::socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
        return -1;
    }
    return info.tcpi_last_data_recv / 1e3;
}

std::string path_of(int fd) {
    std::array<char, 4096> text{};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ::ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
    return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

} // namespace

descriptor_target find_target(int fd) {
    using what = descriptor_target::what;
    const int protocol = option_of(fd, SOL_SOCKET, SO_PROTOCOL, -1);
    if (protocol < 0) { // no socket
        descriptor_target file{what::file, path_of(fd)};
        return file.text.empty() ? descriptor_target{} : file;
    }
    const bool listens = option_of(fd, SOL_SOCKET, SO_ACCEPTCONN, 0) != 0;
    ::sockaddr_storage address{};
    ::socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<::sockaddr*>(&address);
    if (!listens && ::getpeername(fd, any, &size) == 0) {
        const double idle = protocol == IPPROTO_TCP ? idle_seconds(fd) : -1;
        return {what::peer, address_text(address, size), idle};
    }
    size = sizeof address;
    if (::getsockname(fd, any, &size) == 0) {
        return {what::local, address_text(address, size)};
    }
    return {};
}

} // namespace coil::detail
