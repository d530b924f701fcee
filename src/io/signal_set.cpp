#include <coil/io/signal_set.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <string>
#include <system_error>

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace coil {

namespace {

/// The number of a signal, or −errno.
int take_signal(int fd) noexcept {
    ::signalfd_siginfo what{};
    const ssize_t n = ::read(fd, &what, sizeof what);
    return n == sizeof what ? static_cast<int>(what.ssi_signo) : -errno;
}

} // namespace

namespace detail {

signal_element::signal_element(int fd) noexcept : io_element(uring::prep::poll_add(fd, POLLIN)) {}

io_result signal_element::result() noexcept {
    return io_result(entry_.result < 0 ? entry_.result : take_signal(entry_.request.fd));
}

} // namespace detail

signal_set::signal_set(std::span<const int> signals) {
    ::sigset_t wanted;
    ::sigemptyset(&wanted);
    for (const int signal : signals) {
        if (::sigaddset(&wanted, signal) != 0) {
            throw std::system_error(errno, std::generic_category(),
                                    "coil: signal_set: " + std::to_string(signal));
        }
    }
    fd_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), "coil: signalfd");
    }
    ::sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &wanted, &before);
    ::sigemptyset(&blocked_);
    for (const int signal : signals) {
        if (::sigismember(&before, signal) == 0) {
            ::sigaddset(&blocked_, signal);
        }
    }
}

signal_set::~signal_set() {
    if (fd_ < 0) {
        return;
    }
    while (take_signal(fd_) > 0) { // unblocked, they would have their usual effect
    }
    ::close(fd_);
    ::pthread_sigmask(SIG_UNBLOCK, &blocked_, nullptr);
}

} // namespace coil
