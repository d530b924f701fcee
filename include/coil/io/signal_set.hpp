#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/io_result.hpp>

#include <concepts>
#include <initializer_list>
#include <span>
#include <utility>

#include <signal.h>

namespace coil {

namespace detail {

/// Waits until the set has something, and takes it when somebody asks for the result: a signal that
/// nobody receives stays in the set.
class signal_element : public io_element {
public:
    explicit signal_element(int fd) noexcept;

    [[nodiscard]] io_result result() noexcept;
};

} // namespace detail

/// Signals as something to wait for, instead of handlers:
///
///     int main() {
///         signal_set signals{SIGINT, SIGTERM}; // before other threads are started
///         ...
///     }
///     co_await when_any(serve(), signals.next());
///
/// A signal of the set interrupts nobody: it waits in the set until it is taken. Signals of one
/// number that come before that are one (signal(7)).
///
/// Threading: the constructor blocks the signals on the calling thread, and threads that are
/// started from then on inherit that; one that is older and does not block them gets them instead,
/// with their usual effect. next() may be awaited on any context; of several that wait, one gets
/// it. Signals for the process are meant (kill(1), Ctrl-C), and those for a thread are seen there
/// only. The destructor discards what has not been taken, and on its thread unblocks what the
/// constructor had blocked: let both be the same thread.
///
/// signalfd(2). Errors: std::system_error from the constructor, EINVAL for what is no signal.
class signal_set {
public:
    signal_set(std::initializer_list<int> signals)
        : signal_set(std::span(signals.begin(), signals.size())) {}
    template <std::same_as<int>... More>
    explicit signal_set(int signal, More... more)
        : signal_set(std::initializer_list<int>{signal, more...}) {}
    explicit signal_set(std::span<const int> signals);
    signal_set(signal_set&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), blocked_(other.blocked_) {}
    signal_set& operator=(signal_set&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(blocked_, other.blocked_);
        return *this;
    }
    ~signal_set();

    /// co_await gives the number of the next signal, or −errno: -ECANCELED when the task was asked
    /// to stop, -EAGAIN when somebody else has taken the signal. An operation like those of
    /// coil::io: it may stand in chains and limits.
    io_awaitable<detail::signal_element> next() const noexcept {
        return io_awaitable<detail::signal_element>(detail::signal_element(fd_));
    }
    /// `co_await signals` is `co_await signals.next()`.
    [[nodiscard]] detail::io_awaiter<detail::signal_element> operator co_await() const noexcept {
        return next().operator co_await();
    }

    [[nodiscard]] int native_handle() const noexcept { return fd_; }

private:
    int fd_;
    ::sigset_t blocked_{}; // those that were not blocked before
};

} // namespace coil
