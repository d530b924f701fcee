#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/context/multishot.hpp>
#include <coil/context/sleep.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/abi.hpp>

#include <chrono>
#include <cstdint>

// Requests that give a number again and again: accept, poll, timeout. What is common to multishot
// streams stands in io/receive.hpp.

namespace coil::io {

/// See accept_multishot, accept_multishot_direct.
class accept_stream final : detail::multishot_source, detail::ring_attachment {
public:
    accept_stream(descriptor fd, int flags, bool direct) noexcept
        : fd_(fd), flags_(flags), direct_(direct) {}
    ~accept_stream() {
        close();
        if (attached_) {
            home().detach(*this);
        }
    }

    /// The next connection's descriptor, which is the caller's to close; false on errors.
    multishot_next<accept_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<accept_stream>;

    static multishot_value received(accept_stream* /*self*/,
                                    const detail::multishot_result& r) noexcept {
        return multishot_value(r.value);
    }
    int prepare(uring::sqe& request) noexcept override;
    void discard(const detail::multishot_result& r) noexcept override;
    void ring_gone() noexcept override;

    descriptor fd_;
    int flags_;
    bool direct_;
    bool attached_ = false; // direct descriptors end with the ring
};

/// See poll_multishot.
class poll_stream final : detail::multishot_source {
public:
    poll_stream(descriptor fd, unsigned events) noexcept : fd_(fd), events_(events) {}
    ~poll_stream() { close(); }

    /// The next events; false on errors.
    multishot_next<poll_stream> next() noexcept { return multishot_next(*this); }

    /// For poll_update and poll_remove: what the kernel knows it by, 0 while it is not under way.
    [[nodiscard]] std::uint64_t key() const noexcept {
        return is_active() ? multishot_source::key() : 0;
    }
    /// What the next request asks for; poll_update changes a request that is under way.
    void set_events(unsigned events) noexcept { events_ = events; }

private:
    friend class multishot_next<poll_stream>;

    static multishot_value received(poll_stream* /*self*/,
                                    const detail::multishot_result& r) noexcept {
        return multishot_value(r.value);
    }
    int prepare(uring::sqe& request) noexcept override;

    descriptor fd_;
    unsigned events_;
};

/// See timeout_multishot.
class timeout_stream final : detail::multishot_source {
public:
    explicit timeout_stream(std::int64_t ns) noexcept : interval_ns_(ns > 0 ? ns : 1) {}
    ~timeout_stream() { close(); }

    /// How often the time has passed since the last: at least once; or −errno.
    multishot_next<timeout_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<timeout_stream>;

    static multishot_value received(timeout_stream* /*self*/,
                                    const detail::multishot_result& r) noexcept {
        return multishot_value(r.value);
    }
    int prepare(uring::sqe& request) noexcept override;
    bool arrived(detail::multishot_result& r) noexcept override;

    std::int64_t interval_ns_;
    std::int64_t tick_ns_ = 0; // when the next is due; 0: nobody has asked yet
    uring::timespec due_{};
};

/// accept4(2) again and again (IORING_OP_ACCEPT multishot, Linux 5.19; before, one request a
/// connection). Connections that nobody took are closed when the stream is destroyed.
///
///     auto connections = io::accept_multishot(listener);
///     while (auto peer = co_await connections.next())
///         co_spawn(session(net::socket{*peer}));
[[nodiscard]] inline accept_stream accept_multishot(descriptor fd, int flags = 0) noexcept {
    return {fd, flags, false};
}

/// As accept_multishot, into free slots of the context's table: give *peer to
/// io::direct_descriptor.
[[nodiscard]] inline accept_stream accept_multishot_direct(descriptor fd, int flags = 0) noexcept {
    return {fd, flags, true};
}

/// poll(2) again and again (IORING_OP_POLL_ADD multishot, Linux 5.13; before, one request an
/// event): the events each time that some come. Edge-triggered: what is still there from before
/// does not come again.
[[nodiscard]] inline poll_stream poll_multishot(descriptor fd, unsigned events) noexcept {
    return {fd, events};
}

/// A tick every `interval`, the first one after the first next() (IORING_OP_TIMEOUT, Linux 5.4; a
/// request a tick, as the kernel's own repeated timeout is late by more and more, and stops while
/// the context is busy). It does not drift; ticks that nobody waited for are counted, not lost.
template <class Rep, class Period>
[[nodiscard]] timeout_stream
timeout_multishot(std::chrono::duration<Rep, Period> interval) noexcept {
    return timeout_stream(detail::saturated_ns(interval));
}

} // namespace coil::io
