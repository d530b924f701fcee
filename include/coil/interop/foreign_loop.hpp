#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/core/task.hpp>
#include <coil/io/owned_descriptor.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace coil {

/// Watches the descriptors and the deadline of a library that has no event loop of its own and
/// expects the program to wait for them.
///
///     foreign_loop loop;
///     loop.watch(library.descriptor(), EPOLLIN);
///     loop.set_deadline(library.next_timer());
///     for (;;) {
///         const auto woken = co_await loop.wait();
///         for (const auto& [fd, events] : woken.ready) {
///             library.process(fd, events);
///         }
///         if (woken.expired) {
///             library.process_timers();
///         }
///     }
///
/// The descriptors are in an epoll(7) set, and wait() polls that set with one operation of the
/// context. The set is level-triggered, as such libraries expect: data that was not read is
/// reported again. The library may close a watched descriptor; the set does not keep its file open.
///
/// Threading: interrupt() may be called on any thread. All other members may be called on one
/// thread at a time, wait() only on a context. While a wait() is suspended, they may be called, and
/// that wait() takes them into account.
///
/// Cancellation: if the waiting task is asked to stop, wait() throws std::system_error with
/// std::errc::operation_canceled; no event is lost: the next wait() returns it.
class foreign_loop {
public:
    /// A watched descriptor with the events of epoll_ctl(2) that it is ready for: EPOLLIN,
    /// EPOLLOUT, EPOLLERR, ...
    struct readiness {
        int fd;
        std::uint32_t events;
    };
    /// Why wait() has returned.
    struct wake_up {
        /// Valid until the next wait(). unwatch() sets the events of an entry to 0.
        std::span<const readiness> ready;
        bool expired = false;     ///< the deadline has passed and was cleared
        bool interrupted = false; ///< interrupt() was called
    };

    /// Throws std::system_error if the process has no descriptor left.
    foreign_loop();
    foreign_loop(const foreign_loop&) = delete;
    foreign_loop& operator=(const foreign_loop&) = delete;
    /// Precondition: no wait() is suspended.
    ~foreign_loop();

    /// Watches a descriptor for these events, and for EPOLLERR and EPOLLHUP. Replaces the events of
    /// an earlier call; 0 is the same as unwatch(). Throws std::system_error for a descriptor that
    /// epoll does not accept, such as that of a regular file.
    void watch(int fd, std::uint32_t events);
    /// Stops watching a descriptor. No effect if it is not watched, or is closed. Call it before
    /// close(2) only if another descriptor refers to the same open file, as after dup(2) or
    /// fork(2).
    void unwatch(int fd) noexcept;

    /// Sets the time at which wait() returns at the latest. Replaces the previous deadline.
    void set_deadline(std::chrono::steady_clock::time_point deadline) noexcept;
    void clear_deadline() noexcept;

    /// Makes the current wait(), or else the next one, return. Several calls may end the same
    /// wait(). Everything done before the call happens before the return of that wait(). Makes a
    /// system call unless an interruption is already pending.
    void interrupt() noexcept;

    /// Waits until descriptors are ready, the deadline has passed, or interrupt() was called. Only
    /// one task at a time may wait; a second one terminates the program with a message.
    [[nodiscard]] task<wake_up> wait();

private:
    class waiting_scope;

    void arm_timer() noexcept;
    [[nodiscard]] bool take_interrupt() noexcept;
    [[nodiscard]] bool take_expiry() noexcept;
    [[nodiscard]] wake_up take_events();

    static constexpr std::size_t most_at_once = 64;

    const io::owned_descriptor set_;
    const io::owned_descriptor interrupts_; // an eventfd
    const io::owned_descriptor timer_;      // a timerfd
    std::optional<std::chrono::steady_clock::time_point> deadline_;
    std::chrono::steady_clock::time_point timer_ends_ =
        std::chrono::steady_clock::time_point::max(); // the timer is stopped
    bool timer_expired_ = false;
    bool waiting_ = false;
    std::atomic<bool> interrupted_{false};
    std::size_t count_ = 0;
    std::array<readiness, most_at_once> ready_{};
};

} // namespace coil
