#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/multishot.hpp>
#include <coil/context/sleep.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/abi.hpp>

#include <cstdint>

// Multishot requests whose results are numbers: accept, poll, timeout. io/receive.hpp documents
// what all multishot streams have in common.

namespace coil::io {

/// The stream returned by accept_multishot and accept_multishot_direct.
class accept_stream final : detail::multishot_source, detail::ring_attachment {
public:
    accept_stream(descriptor fd, int flags, bool direct) noexcept
        : fd_(fd), flags_(flags), direct_(direct) {}
    ~accept_stream() {
        close();
        if (attached_) {
            owner_loop().detach(*this);
        }
    }

    /// The next connection's descriptor, which the caller must close, or -errno (false in a
    /// condition).
    multishot_next<accept_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<accept_stream>;

    static multishot_value received(accept_stream* /*self*/,
                                    const detail::multishot_result& r) noexcept {
        return multishot_value(r.value);
    }
    int prepare(detail::prepared_sqe& request) noexcept override;
    void discard(const detail::multishot_result& r) noexcept override;
    void ring_gone() noexcept override;

    descriptor fd_;
    int flags_;
    bool direct_;
    bool attached_ = false; // to the ring, which closes direct descriptors when it ends
};

/// The stream returned by poll_multishot.
class poll_stream final : detail::multishot_source {
public:
    poll_stream(descriptor fd, unsigned events) noexcept : fd_(fd), events_(events) {}
    ~poll_stream() { close(); }

    /// The next events, or -errno (false in a condition).
    multishot_next<poll_stream> next() noexcept { return multishot_next(*this); }

    /// The user_data of its request, for poll_update and poll_remove; 0 if no request is in flight.
    [[nodiscard]] std::uint64_t key() const noexcept {
        return is_active() ? multishot_source::key() : 0;
    }
    /// The events of the next request; poll_update changes a request in flight.
    void set_events(unsigned events) noexcept { events_ = events; }

private:
    friend class multishot_next<poll_stream>;

    static multishot_value received(poll_stream* /*self*/,
                                    const detail::multishot_result& r) noexcept {
        return multishot_value(r.value);
    }
    int prepare(detail::prepared_sqe& request) noexcept override;

    descriptor fd_;
    unsigned events_;
};

/// The stream returned by timeout_multishot.
class timeout_stream final : detail::multishot_source {
public:
    explicit timeout_stream(std::int64_t ns) noexcept : interval_ns_(ns > 0 ? ns : 1) {}
    ~timeout_stream() { close(); }

    /// The number of intervals that have passed since the previous result, at least one; or -errno.
    multishot_next<timeout_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<timeout_stream>;

    static multishot_value received(timeout_stream* /*self*/,
                                    const detail::multishot_result& r) noexcept {
        return multishot_value(r.value);
    }
    int prepare(detail::prepared_sqe& request) noexcept override;
    bool arrived(detail::multishot_result& r) noexcept override;

    std::int64_t interval_ns_;
    std::int64_t tick_ns_ = 0; // when the next tick is due; 0: before the first next()
    uring::timespec due_{};
};

/// accept4(2), repeatedly (IORING_OP_ACCEPT multishot, Linux 5.19; before, one request per
/// connection). Destroying the stream closes connections that were not taken.
///
///     auto connections = io::accept_multishot(listener);
///     while (auto peer = co_await connections.next())
///         co_spawn(session(net::socket{*peer}));
[[nodiscard]] inline accept_stream accept_multishot(descriptor fd, int flags = 0) noexcept {
    return {fd, flags, false};
}

/// Like accept_multishot, but into free slots of the context's table: construct an
/// io::direct_descriptor from *peer.
[[nodiscard]] inline accept_stream accept_multishot_direct(descriptor fd, int flags = 0) noexcept {
    return {fd, flags, true};
}

/// poll(2), repeatedly (IORING_OP_POLL_ADD multishot, Linux 5.13; before, one request per event):
/// returns the events each time new ones occur. Edge-triggered: an event that remains ready is not
/// reported again.
[[nodiscard]] inline poll_stream poll_multishot(descriptor fd, unsigned events) noexcept {
    return {fd, events};
}

/// A tick every `interval`, counted from the first next() (IORING_OP_TIMEOUT, Linux 5.4). Uses one
/// request per tick, because the kernel's multishot timeout accumulates delays and stops while the
/// context is busy. It does not drift; missed ticks are counted, not lost.
template <class Rep, class Period>
[[nodiscard]] timeout_stream
timeout_multishot(std::chrono::duration<Rep, Period> interval) noexcept {
    return timeout_stream(detail::saturated_ns(interval));
}

} // namespace coil::io
