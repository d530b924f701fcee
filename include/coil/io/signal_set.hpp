#pragma once

#include <coil/context/operation.hpp>
#include <coil/context/wait.hpp>
#include <coil/core/io_result.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <signal.h>

namespace coil {

namespace detail {

/// What a signal_set and those who wait for it share, so that no descriptor that somebody waits on
/// is closed, and its number given to something else.
class signal_source;

/// One of those who keep it. A moved one keeps nothing.
class signal_source_owner {
public:
    explicit signal_source_owner(const ::sigset_t& signals);
    signal_source_owner(const signal_source_owner& other) noexcept;
    signal_source_owner(signal_source_owner&& other) noexcept
        : source_(std::exchange(other.source_, nullptr)) {}
    signal_source_owner& operator=(signal_source_owner other) noexcept {
        std::swap(source_, other.source_);
        return *this;
    }
    ~signal_source_owner();

    [[nodiscard]] signal_source* get() const noexcept { return source_; }

private:
    signal_source* source_;
};

/// Takes a signal when there is one. One that nobody receives goes back to where it came from.
class signal_element {
public:
    static constexpr std::uint16_t entries = 1;
    static constexpr bool needs_result = false;
    static constexpr bool may_come_in_vain = true;

    explicit signal_element(signal_source_owner source) noexcept;

    ring_entry& arm() noexcept;
    [[nodiscard]] io_result result() noexcept;
    void drop() noexcept;

private:
    struct entry : taking_entry {
        using taking_entry::taking_entry;
        signal_source* source = nullptr;
        bool has_taken = false;
    };

    static int take(taking_entry& of) noexcept;

    signal_source_owner source_;
    entry entry_;
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
/// with their usual effect. next() may be awaited on any context; of several that wait, for one set
/// or for several that have the signal, one gets it. Signals for the process are meant (kill(1),
/// Ctrl-C), and those for a thread are seen there only.
///
/// Destroying a set ends the waits for it with -ECANCELED. When it is the last one of the process
/// that has a signal, what of that has not been taken is discarded, and the signal is unblocked on
/// the thread that destroys the set, unless it was blocked before the first: let sets of one signal
/// be made and destroyed on one thread.
///
/// signalfd(2). Errors: std::system_error from the constructor, EINVAL for what is no signal. Takes
/// three descriptors.
class signal_set {
public:
    signal_set(std::initializer_list<int> signals)
        : signal_set(std::span(signals.begin(), signals.size())) {}
    template <std::same_as<int>... More>
    explicit signal_set(int signal, More... more)
        : signal_set(std::initializer_list<int>{signal, more...}) {}
    explicit signal_set(std::span<const int> signals) : source_(set_of(signals)) {}
    signal_set(signal_set&& other) noexcept = default;
    signal_set& operator=(signal_set&& other) noexcept {
        std::swap(source_, other.source_);
        return *this;
    }
    ~signal_set();

    /// co_await gives the number of the next signal, or −errno: -ECANCELED when the task was asked
    /// to stop or the set is destroyed. An operation like those of coil::io: it may stand in chains
    /// and limits. (What follows it in a chain begins when there is a signal, which stays in the
    /// set. Limited inside of a chain, it gives -EAGAIN when somebody else was quicker.)
    io_awaitable<detail::signal_element> next() const noexcept {
        return io_awaitable<detail::signal_element>(detail::signal_element(source_));
    }
    /// `co_await signals` is `co_await signals.next()`.
    [[nodiscard]] detail::io_awaiter<detail::signal_element> operator co_await() const noexcept {
        return next().operator co_await();
    }

    /// The signalfd(2); -1 of a set that was moved from.
    [[nodiscard]] int native_handle() const noexcept;

private:
    static ::sigset_t set_of(std::span<const int> signals);

    detail::signal_source_owner source_;
};

} // namespace coil
