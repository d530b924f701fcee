// Connects standard input and output to a TCP connection, like nc(1):
//
//     netcat -l 9000 > copy.tar             wait for one connection
//     netcat localhost 9000 < backup.tar    connect; at the end of the input, shut down sending
//     netcat -w 3 example.org 80            exit after three seconds without a transfer
//     netcat -U /run/app.sock               a Unix socket; with -l, wait for a connection
//     netcat -l -k -e 'sort -u' 9000        run a shell command for each connection, one at a time
//     netcat -u 192.0.2.1 514               UDP: each read of the input is a datagram
//     netcat --tls example.org 443          TLS; --unverified accepts any certificate of the server
//     netcat --tls --cert c.pem --key k.pem -l 9000
//
// It shows two coroutines on one connection, name resolution, limits, and how to use calls that
// io_uring does not speed up: if both ends support splice(2), the program moves the data by that
// call, without copying it, and coil only reports readiness.

#include "netcat/arguments.hpp"
#include "netcat/tls.hpp"
#include "netcat/udp.hpp"

#include <coil/coil.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace coil;
using netcat::arguments;

namespace {

using clock = std::chrono::steady_clock;

/// One end of a transfer, with the name that errors use for it. Does not own the descriptor.
struct end_point {
    int fd;
    const char* name;
    bool is_network = false;
};
constexpr end_point standard_input{STDIN_FILENO, "standard input"};
constexpr end_point standard_output{STDOUT_FILENO, "standard output"};

[[noreturn]] void fail(long error, const std::string& what) {
    throw std::system_error(static_cast<int>(-error), std::generic_category(), what);
}

/// The file type that fstat(2) returns, such as S_IFIFO; 0 on error.
::mode_t type_of(int fd) {
    struct ::stat status{};
    return ::fstat(fd, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

constexpr std::size_t pipe_size = std::size_t{1} << 20;

/// If `fd` is a pipe, it holds more data, so that each call moves more. If this fails, the pipe
/// keeps its size.
void enlarge_pipe(int fd) noexcept { ::fcntl(fd, F_SETPIPE_SZ, static_cast<int>(pipe_size)); }

/// A kernel buffer between two ends that are not pipes: splice(2) needs a pipe on one side.
class pipe_between {
public:
    pipe_between() {
        if (::pipe2(fds_, O_CLOEXEC) != 0) {
            fail(-errno, "pipe");
        }
        enlarge_pipe(in());
    }
    pipe_between(const pipe_between&) = delete;
    pipe_between& operator=(const pipe_between&) = delete;
    ~pipe_between() {
        close_in();
        ::close(out());
    }

    [[nodiscard]] int in() const noexcept { return fds_[1]; }
    [[nodiscard]] int out() const noexcept { return fds_[0]; }
    void close_in() noexcept {
        if (fds_[1] >= 0) {
            ::close(std::exchange(fds_[1], -1));
        }
    }

private:
    int fds_[2];
};

class conversation {
public:
    conversation(net::socket peer, std::chrono::seconds backoff)
        : peer_(std::move(peer)), patience_(backoff) {
        // splice(2) into a socket blocks in the kernel unless the socket is non-blocking.
        ::fcntl(peer_.native_handle(), F_SETFL, O_NONBLOCK);
    }

    /// Returns when both sides have sent everything; if the input is a terminal, when the peer has.
    task<> run() {
        join_handle<outcome> sending = spawn(send_input());
        std::exception_ptr trouble;
        bool input_counts = false;
        try {
            const bool can_splice =
                ::isatty(STDOUT_FILENO) == 0 && type_of(STDOUT_FILENO) != S_IFSOCK;
            const outcome received = co_await relay(connection(), standard_output, can_splice);
            input_counts = received == outcome::ended && ::isatty(STDIN_FILENO) == 0;
        } catch (...) {
            trouble = std::current_exception();
        }
        // `sending` uses this object, so it must end before this function returns.
        if (!input_counts) {
            sending.cancel();
        }
        try {
            co_await sending;
        } catch (...) {
            if (input_counts) {
                trouble = std::current_exception();
            }
        }
        if (trouble) {
            std::rethrow_exception(trouble);
        }
    }

private:
    enum class outcome { ended, given_up, unsuitable };

    [[nodiscard]] end_point connection() const noexcept {
        return {peer_.native_handle(), "connection", true};
    }

    task<outcome> send_input() {
        try {
            const ::mode_t type = type_of(STDIN_FILENO);
            const bool can_splice = type == S_IFIFO || type == S_IFREG;
            const outcome sent = co_await relay(standard_input, connection(), can_splice);
            if (sent == outcome::ended) {
                co_await peer_.shutdown_write();
            }
            co_return sent;
        } catch (...) {
            // ends receiving, too; run() then rethrows this exception
            ::shutdown(peer_.native_handle(), SHUT_RDWR);
            throw;
        }
    }

    task<outcome> relay(end_point from, end_point to, bool can_splice) {
        if (can_splice) {
            const outcome result = co_await splice_all(from, to);
            if (result != outcome::unsuitable) {
                co_return result;
            }
        }
        co_return co_await copy_all(from, to);
    }

    /// Waits until `fd` is ready. Returns false if nothing was transferred in either direction for
    /// the time of -w. Returns true if the task was cancelled; the next operation then fails.
    task<bool> ready(int fd, unsigned events) {
        for (;;) {
            const clock::time_point deadline = last_move_ + patience_;
            const int polled = co_await timeout_at(io::poll(fd, events), deadline);
            if (polled != -ETIMEDOUT) {
                co_return polled != -ECANCELED;
            }
            if (last_move_ + patience_ == deadline) {
                co_return false;
            }
        }
    }

    void moved() { last_move_ = clock::now(); }

    task<outcome> copy_all(end_point from, end_point to) {
        constexpr std::size_t size = std::size_t{256} << 10;
        const auto buffer = std::make_unique_for_overwrite<std::byte[]>(size);
        while (co_await ready(from.fd, POLLIN)) {
            const int n = co_await io::read(from.fd, {buffer.get(), size});
            if (n == 0) {
                co_return outcome::ended;
            }
            if (n < 0 && n != -EAGAIN) {
                fail(n, from.name);
            }
            const_buffer rest{buffer.get(), n};
            while (rest.size() > 0) {
                const int written = co_await io::write(to.fd, rest);
                if (written >= 0) {
                    rest = rest.drop(static_cast<std::size_t>(written));
                    moved();
                } else if (written != -EAGAIN) {
                    fail(written, to.name);
                } else if (!co_await ready(to.fd, POLLOUT)) {
                    co_return outcome::given_up;
                }
            }
        }
        co_return outcome::given_up;
    }

    /// Waits for more data after a small piece: every piece costs a wake-up and two system calls.
    static task<> let_more_arrive(end_point from, long n) {
        constexpr long small = 256L << 10;
        if (n < small && from.is_network) {
            co_await sleep_for(std::chrono::microseconds(50));
        }
    }

    /// As copy_all(), but by splice(2), without copying the data. Returns `unsuitable` if one of
    /// the two ends does not support the call; all data read until then has been written.
    task<outcome> splice_all(end_point from, end_point to) {
        std::optional<pipe_between> between;
        if (type_of(from.fd) != S_IFIFO && type_of(to.fd) != S_IFIFO) {
            between.emplace();
        }
        enlarge_pipe(from.fd);
        const int first_stop = between ? between->in() : to.fd;
        for (bool has_input = false;;) {
            const long n = splice(from.fd, first_stop, pipe_size);
            if (n == 0) {
                co_return outcome::ended;
            }
            if (n == -EINVAL) {
                co_return outcome::unsuitable;
            }
            if (n == -EAGAIN) { // the input is empty, or the output is full
                if (!co_await (has_input ? ready(first_stop, POLLOUT) : ready(from.fd, POLLIN))) {
                    co_return outcome::given_up;
                }
                has_input = !has_input;
                continue;
            }
            if (n < 0) {
                fail(n, n == -EPIPE ? to.name : from.name);
            }
            has_input = false;
            moved();
            for (long rest = between ? n : 0; rest > 0;) {
                const long passed_on =
                    splice(between->out(), to.fd, static_cast<std::size_t>(rest));
                if (passed_on >= 0) {
                    rest -= passed_on;
                } else if (passed_on == -EINVAL) {
                    between->close_in();
                    const outcome drained = co_await copy_all({between->out(), from.name}, to);
                    co_return drained == outcome::ended ? outcome::unsuitable : drained;
                } else if (passed_on != -EAGAIN) {
                    fail(passed_on, to.name);
                } else if (!co_await ready(to.fd, POLLOUT)) {
                    co_return outcome::given_up;
                }
            }
            co_await let_more_arrive(from, n);
            co_await yield(); // for the other direction, if there is always more
        }
    }

    static long splice(int from, int to, std::size_t size) noexcept {
        const ::ssize_t n =
            ::splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        return n < 0 ? -errno : n;
    }

    net::socket peer_;
    std::chrono::seconds patience_;
    clock::time_point last_move_ = clock::now();
};

/// The settings for every connection.
struct settings : arguments {
    std::shared_ptr<const netcat::tls_settings> for_tls; // null: no TLS
};

task<net::socket> connect_locally(const arguments& args) {
    net::socket socket = net::socket::create_unix();
    const int error = co_await socket.connect(net::unix_address(args.port));
    if (error < 0) {
        fail(error, "cannot connect to " + args.port);
    }
    co_return socket;
}

task<net::socket> connect(const arguments& args) {
    int error = 0;
    for (const net::inet_address& address : co_await net::resolve(args.host, args.port)) {
        net::socket socket = net::socket::create_tcp(address.family());
        error = co_await timeout(socket.connect(address), args.backoff);
        if (error == 0) {
            co_return socket;
        }
    }
    fail(error, "cannot connect to " + args.host + " port " + args.port);
}

/// Connects the peer to the standard input and output of the command, or of this program.
task<> converse(net::socket peer, const settings& args) {
    if (args.for_tls) {
        const auto server = args.listen ? std::nullopt : std::optional(args.host);
        co_return co_await args.for_tls->converse_with(std::move(peer), server, args.backoff);
    }
    if (args.command.empty()) {
        conversation both_ways(std::move(peer), args.backoff);
        co_return co_await both_ways.run();
    }
    const redirect both = redirect::descriptor(peer.native_handle());
    process child =
        process::spawn({"/bin/sh", "-c", args.command}, {both, both, redirect::inherit()});
    co_await child.wait();
}

task<> listen(const settings& args) {
    net::endpoint local;
    if (args.local) {
        local = net::unix_address(args.port);
    } else {
        local = (co_await net::resolve(args.host, args.port)).front();
    }
    std::optional<net::acceptor> acceptor{local};
    std::fprintf(stderr, "listening on %s\n", acceptor->local_endpoint().to_string().c_str());
    while (acceptor) {
        net::socket peer = co_await acceptor->accept();
        if (!peer) {
            throw std::system_error(peer.error(), "accept");
        }
        if (!args.keep) {
            acceptor.reset(); // further clients are refused
        }
        try {
            co_await converse(std::move(peer), args);
        } catch (const std::exception& e) {
            if (!args.keep) {
                throw;
            }
            std::fprintf(stderr, "netcat: %s\n", e.what());
        }
    }
}

task<> talk(settings args) {
    if (args.tls.enabled) {
        args.for_tls = std::make_shared<netcat::tls_settings>(args.tls, args.listen);
    }
    if (args.datagrams && args.listen) {
        const net::endpoint local = (co_await net::resolve(args.host, args.port)).front();
        co_await netcat::listen_for_datagrams(local, args.backoff);
    } else if (args.datagrams) {
        net::socket peer = co_await netcat::connect_for_datagrams(args.host, args.port);
        co_await netcat::converse_by_datagrams(std::move(peer), args.backoff);
    } else if (args.listen) {
        co_await listen(args);
    } else if (args.local) {
        co_await converse(co_await connect_locally(args), args);
    } else {
        co_await converse(co_await connect(args), args);
    }
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<arguments> args = netcat::parse(argc, argv);
    if (!args) {
        std::fputs(netcat::usage, stderr);
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN); // a closed output is reported as EPIPE
    io_context_options options;
    options.idle = idle_policy::park(); // a stream needs throughput rather than short delays
    coil::run(talk({*args, nullptr}), options);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "netcat: %s\n", e.what());
    return 1;
}
