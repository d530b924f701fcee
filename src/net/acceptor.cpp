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

/// Errors that say nothing about the listening socket: accept(2), "Error handling".
bool concerns_one_connection(int error) noexcept {
    switch (error) {
    case -ECONNABORTED:
    case -EINTR:
    case -EPROTO:
    case -ENETDOWN:
    case -ENOPROTOOPT:
    case -EHOSTDOWN:
    case -ENONET:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
    case -EPERM:
        return true;
    default:
        return false;
    }
}

bool resources_ran_out(int error) noexcept {
    return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
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
        if (resources_ran_out(fd)) {
            if (const int slept = co_await sleep_for(retry_after); slept < 0) {
                co_return socket(slept);
            }
        } else if (!concerns_one_connection(fd)) {
            co_return socket(fd);
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
