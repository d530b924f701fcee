#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/operation.hpp>
#include <coil/io/detail/signal_element.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>

#include <signal.h>

namespace coil {

/// Signals to wait for, instead of handlers:
///
///     int main() {
///         signal_set signals{SIGINT, SIGTERM}; // before other threads are started
///         ...
///     }
///     co_await when_any(serve(), signals.next());
///
/// A signal of the set does not interrupt any thread: it stays pending until next() takes it.
/// Further signals of the same number that arrive before that are merged with it (signal(7)).
///
/// Threading: the constructor blocks the signals on the calling thread, and threads started later
/// inherit that. An older thread that does not block them receives them instead, with their usual
/// effect. next() may be awaited on any context; if several coroutines wait for the same signal, in
/// one set or in several, one of them receives it. The set is for signals sent to the process
/// (kill(1), Ctrl-C); signals sent to a thread are seen on that thread only.
///
/// Destroying a set ends its waits with -ECANCELED. When the last set of the process with a given
/// signal is destroyed, pending instances are discarded, and the signal is unblocked on the
/// destroying thread unless it was blocked before the first set existed. Therefore create and
/// destroy the sets of one signal on one thread.
///
/// signalfd(2). Errors: the constructor throws std::system_error, EINVAL for an invalid signal.
/// Uses three descriptors.
class signal_set {
public:
    signal_set(std::initializer_list<int> signals) : source_(set_of(signals)) {}
    template <std::same_as<int>... More>
    explicit signal_set(int signal, More... more)
        : source_(set_of(std::initializer_list<int>{signal, more...})) {}
    explicit signal_set(std::span<const int> signals);
    /// Produces a readable compiler error.
    template <std::convertible_to<const char*>... Names>
        requires(sizeof...(Names) > 0)
    signal_set(Names&&...) COIL_DELETE("signals are numbers: signal_set{SIGINT, SIGTERM}");
    signal_set(signal_set&& other) noexcept = default;
    signal_set& operator=(signal_set&& other) noexcept {
        coil::detail::swap_values(source_, other.source_);
        return *this;
    }
    ~signal_set();

    /// co_await returns the number of the next signal, or -errno: -ECANCELED if the task was asked
    /// to stop or the set is destroyed. It may be used in chains and with timeouts, like the
    /// operations of coil::io. (In a chain, the next operation starts when a signal is pending; the
    /// signal is not consumed. With a timeout inside a chain, next() returns -EAGAIN if another
    /// waiter took the signal first.)
    io_awaitable<detail::signal_element> next() const noexcept {
        return io_awaitable<detail::signal_element>(detail::signal_element(source_));
    }
    /// `co_await signals` is `co_await signals.next()`.
    [[nodiscard]] detail::io_awaiter<detail::signal_element> operator co_await() const noexcept {
        return next().operator co_await();
    }

    /// The signalfd(2); -1 for a moved-from set.
    [[nodiscard]] int native_handle() const noexcept;

private:
    static ::sigset_t set_of(std::initializer_list<int> signals);
    static ::sigset_t set_of(const int* signals, std::size_t count);

    detail::signal_source_owner source_;
};

} // namespace coil
