#include "descriptor_target.hpp"

#include "task_writing.hpp"

#include <coil/base/service_thread_start.hpp>
#include <coil/context/processors.hpp>
#include <coil/uring/abi.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace coil::detail {

namespace {

std::string inet_text(int family, const void* address, std::uint16_t port) {
    std::string text;
    if (family == AF_INET) { // inet_ntop() takes longer than the call that returned the address
        for (const std::uint8_t byte : *static_cast<const std::array<std::uint8_t, 4>*>(address)) {
            append_number(text, unsigned{byte});
            text += '.';
        }
        text.back() = ':';
    } else {
        std::array<char, INET6_ADDRSTRLEN> host{};
        ::inet_ntop(family, address, host.data(), host.size());
        text = '[' + std::string(host.data()) + "]:";
    }
    append_number(text, unsigned{ntohs(port)});
    return text;
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

bool is_inet(const ::sockaddr_storage& address) noexcept {
    return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

descriptor_target find_target(int fd, bool receives) {
    using what = descriptor_target::what;
    ::sockaddr_storage address{};
    ::socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<::sockaddr*>(&address);
    if (::getpeername(fd, any, &size) == 0) {
        const double idle = receives && is_inet(address) ? idle_seconds(fd) : -1;
        return {what::peer, address_text(address, size), idle};
    }
    if (errno == ENOTSOCK) {
        descriptor_target file{what::file, path_of(fd)};
        return file.text.empty() ? descriptor_target{} : file;
    }
    size = sizeof address;
    if (errno != EBADF && ::getsockname(fd, any, &size) == 0) {
        return {what::local, address_text(address, size)};
    }
    return {};
}

/// Whether the operation waits for data from the peer.
bool receives(std::uint8_t code) noexcept {
    switch (static_cast<uring::opcode>(code)) {
    case uring::opcode::read:
    case uring::opcode::readv:
    case uring::opcode::read_fixed:
    case uring::opcode::read_multishot:
    case uring::opcode::poll_add:
    case uring::opcode::recv:
    case uring::opcode::recvmsg:
    case uring::opcode::splice:
        return true;
    default:
        return false;
    }
}

} // namespace

descriptor_targets::descriptor_targets(std::span<const context_snapshot> contexts) {
    std::size_t uses = 0;
    for (const context_snapshot& context : contexts) {
        uses += context.descriptors.size();
    }
    all_.reserve(uses);
    for (const context_snapshot& context : contexts) {
        for (const descriptor_use& use : context.descriptors) {
            add(use);
        }
    }
    look_up();
}

void descriptor_targets::add(const descriptor_use& use) {
    const auto fd = static_cast<std::size_t>(use.fd);
    if (fd >= index_.size()) {
        index_.resize(std::max(fd + 1, 2 * index_.size()), none);
    }
    if (index_[fd] == none) {
        index_[fd] = static_cast<std::uint32_t>(all_.size());
        all_.push_back({use.fd, false});
    }
    looked_up& one = all_[index_[fd]];
    one.receives = one.receives || receives(use.opcode);
}

void descriptor_targets::look_up() {
    constexpr std::size_t part = 256;
    constexpr std::size_t usual_part = 4 * part; // per thread; starting one takes far less time
    constexpr std::size_t most_threads = 4;
    std::atomic<std::size_t> next = 0;
    const auto work = [&]() noexcept {
        for (std::size_t at = 0;
             (at = next.fetch_add(part, std::memory_order_relaxed)) < all_.size();) {
            for (looked_up& one : std::span(all_).subspan(at, std::min(part, all_.size() - at))) {
                try {
                    one.target = find_target(one.fd, one.receives);
                } catch (const std::bad_alloc&) { // NOLINT(*-empty-catch): it stays unknown
                }
            }
        }
    };
    std::vector<std::thread> helpers;
    if (all_.size() >= 2 * usual_part) {
        const std::size_t threads =
            std::min({most_threads, all_.size() / usual_part, allowed_processors().size()});
        try {
            const service_thread_start inherited;
            for (std::size_t i = 1; i < threads; ++i) {
                helpers.emplace_back(work);
            }
        } catch (const std::exception&) { // NOLINT(*-empty-catch): fewer threads, or none
        }
    }
    work();
    for (std::thread& each : helpers) {
        each.join();
    }
}

const descriptor_target* descriptor_targets::find(const wait_record& wait,
                                                  const context_snapshot& context) const noexcept {
    return wait.has_descriptor() && !context.is_simulated
               ? &all_[index_[static_cast<std::size_t>(wait.fd)]].target
               : nullptr;
}

} // namespace coil::detail
