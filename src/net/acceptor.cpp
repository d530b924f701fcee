#include <coil/context/detail/perform.hpp>
#include <coil/context/sleep.hpp>
#include <coil/net/acceptor.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <chrono>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

namespace coil::net {

namespace {

void check(io_result result, const char* what, const endpoint& address) {
    if (!result.has_value()) {
        throw std::system_error(result.error(),
                                "coil: cannot " + std::string(what) + ' ' + address.to_string());
    }
}

/// The connection no longer exists, or a signal interrupted the call; the next connection may be
/// available.
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

/// Reads the identity of the file at `path`. Returns 0 or -errno.
int identify(const std::string& path, struct ::statx& file) noexcept {
    return coil::detail::perform(uring::prep::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW,
                                                    STATX_TYPE | STATX_INO, &file));
}

std::uint64_t device_of(const struct ::statx& file) noexcept {
    return std::uint64_t{file.stx_dev_major} << 32U | file.stx_dev_minor;
}

bool is_same_file(const struct ::statx& a, const struct ::statx& b) noexcept {
    return a.stx_ino == b.stx_ino && device_of(a) == device_of(b);
}

/// connect(2) of a non-blocking Unix socket, which completes immediately.
int try_to_connect(int fd, const endpoint& to) noexcept {
    if (coil::detail::current_world() != nullptr) {
        return coil::detail::perform(uring::prep::connect(fd, to.data(), to.size()));
    }
    return ::connect(fd, to.data(), to.size()) == 0 ? 0 : -errno;
}

/// Removes the socket file of a server that has ended. Returns false if a server still listens
/// there, or if the file is not a socket.
bool remove_stale(const endpoint& local, int type) {
    const std::string path(local.as_unix().name());
    struct ::statx before{};
    // Connecting to any other kind of file is refused, too.
    if (identify(path, before) != 0 || !S_ISSOCK(before.stx_mode)) {
        return false;
    }
    const socket probe = socket::create_unix(type | SOCK_NONBLOCK);
    if (try_to_connect(probe.native_handle(), local) != -ECONNREFUSED) {
        return false;
    }
    struct ::statx now{};
    return identify(path, now) == 0 && is_same_file(before, now) &&
           coil::detail::perform(uring::prep::unlinkat(AT_FDCWD, path.c_str(), 0)) == 0;
}

} // namespace

namespace detail {

socket_file_owner::socket_file_owner(std::string path) {
    struct ::statx file{};
    if (identify(path, file) == 0) {
        path_ = std::move(path);
        inode_ = file.stx_ino;
        device_ = device_of(file);
    }
}

socket_file_owner& socket_file_owner::operator=(socket_file_owner&& other) noexcept {
    if (this != &other) {
        remove();
        path_ = std::exchange(other.path_, {});
        inode_ = other.inode_;
        device_ = other.device_;
    }
    return *this;
}

void socket_file_owner::remove() noexcept {
    struct ::statx file{};
    if (!path_.empty() && identify(path_, file) == 0 && file.stx_ino == inode_ &&
        device_of(file) == device_) {
        coil::detail::perform(uring::prep::unlinkat(AT_FDCWD, path_.c_str(), 0));
    }
    path_.clear();
}

} // namespace detail

void acceptor::open(const endpoint& local, const acceptor_options& options) {
    socket_ = local.is_unix() ? socket::create_unix(options.unix_type)
                              : socket::create_tcp(local.family());
    if (local.is_unix()) {
        bind_unix(local);
    } else {
        check(socket_.set_reuse_address(true), "set SO_REUSEADDR for", local);
        if (options.reuse_port) {
            check(socket_.set_reuse_port(true), "set SO_REUSEPORT for", local);
        }
        if (options.incoming_cpu >= 0) {
            static_cast<void>(socket_.set_incoming_cpu(options.incoming_cpu)); // only a preference
        }
        check(socket_.bind(local), "bind to", local);
    }
    check(socket_.listen(options.backlog), "listen on", local);
}

void acceptor::bind_unix(const endpoint& local) {
    int type = SOCK_STREAM;
    coil::detail::perform(
        uring::prep::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_TYPE, &type, sizeof type));
    io_result bound = socket_.bind(local);
    if (bound == -EADDRINUSE && !local.as_unix().is_abstract() && remove_stale(local, type)) {
        bound = socket_.bind(local);
    }
    check(bound, "bind to", local);
    if (const unix_address name = local.as_unix(); !name.is_abstract() && !name.is_unnamed()) {
        file_ = detail::socket_file_owner(std::string(name.name()));
    }
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
