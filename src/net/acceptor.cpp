#include <coil/context/sleep.hpp>
#include <coil/net/acceptor.hpp>

#include <cerrno>
#include <chrono>
#include <system_error>

namespace coil::net {

namespace {

void check(io_result result, const char* what, const inet_address& address) {
    if (!result.has_value()) {
        throw std::system_error(result.error(),
                                "coil: cannot " + std::string(what) + ' ' + address.to_string());
    }
}

/// The connection was reset before it was accepted; the next one may be available.
bool connection_is_gone(int error) noexcept {
    return error == -ECONNABORTED || error == -EINTR || error == -EPROTO;
}

/// Temporary errors that need a delay: no descriptors or memory, a firewall's refusal, and the
/// network errors that accept(2), "Error handling", says to retry.
bool may_pass(int error) noexcept {
    switch (error) {
    case -EMFILE:
    case -ENFILE:
    case -ENOBUFS:
    case -ENOMEM:
    case -EPERM:
    case -ENETDOWN:
    case -ENOPROTOOPT:
    case -EHOSTDOWN:
    case -ENONET:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
        return true;
    default:
        return false;
    }
}

} // namespace

acceptor::acceptor(const inet_address& local, const acceptor_options& options)
    : socket_(socket::create_tcp(local.family())) {
    check(socket_.set_reuse_address(true), "set SO_REUSEADDR for", local);
    if (options.reuse_port) {
        check(socket_.set_reuse_port(true), "set SO_REUSEPORT for", local);
    }
    check(socket_.bind(local), "bind to", local);
    check(socket_.listen(options.backlog), "listen on", local);
}

task<socket> acceptor::accept() {
    constexpr auto retry_after = std::chrono::milliseconds(5);
    for (;;) {
        const int fd = co_await io::accept(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0) {
            co_return socket(fd);
        }
        if (connection_is_gone(fd)) {
            continue;
        }
        if (!may_pass(fd)) {
            co_return socket(fd);
        }
        if (const int slept = co_await sleep_for(retry_after); slept < 0) {
            co_return socket(slept);
        }
    }
}

task<std::optional<socket>> acceptor::connections::next() {
    socket peer = co_await from_->accept();
    if (!peer) {
        co_return std::nullopt;
    }
    co_return std::optional<socket>(std::move(peer));
}

} // namespace coil::net
