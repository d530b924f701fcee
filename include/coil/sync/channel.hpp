#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>
#include <coil/sync/detail/channel_awaiters.hpp>
#include <coil/sync/detail/channel_batches.hpp>
#include <coil/sync/detail/channel_core.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

namespace coil {

struct unbounded_t {
    explicit unbounded_t() = default;
};
/// Tag for channel<T> ch{unbounded}, whose send() never waits for space.
inline constexpr unbounded_t unbounded{};

namespace detail {

struct no_element_type {};

} // namespace detail

template <class T>
class send_awaitable;

/// A queue between coroutines: bounded, unbounded, or without a buffer (rendezvous). As in Go, a
/// receiver gets the remaining elements of a closed channel.
///
///     coil::channel<int> ch{16};
///     // one coroutine                          // another
///     for (int i = 0; i < 100; ++i)             while (auto n = co_await ch.recv())
///         co_await ch.send(i);                      use(*n);
///     ch.close();
///
/// Without a buffer (`channel<T> ch;`), send() waits until a receiver takes the value.
///
/// Any number of coroutines may send and receive. Elements are received in the order in which they
/// were sent, and waiters are served first come, first served. After close(), the remaining
/// elements are still received, then recv() returns nullopt. send(), including one that is already
/// waiting, throws std::system_error with std::errc::broken_pipe.
///
/// Threading: all members may be called from any context and any thread. A waiter resumes on its
/// own context. Elements may be moved and destroyed on any of these threads; neither may throw or
/// use the channel. The channel must outlive every call and every wait on it.
///
/// Cancellation: if the waiting task is asked to stop, send() and recv() throw std::system_error
/// with std::errc::operation_canceled. A cancelled recv() takes nothing: if an element had been
/// assigned to it before it resumed, or before its coroutine was destroyed, that element goes back
/// to the front of the channel. (Another receiver may have taken a later element in the meantime.)
/// A cancelled send() has sent nothing; a send() whose value was already taken succeeds.
///
/// A recv() that has to wait, or whose result a combinator may discard, reserves the memory for
/// giving an element back. If there is none, it throws std::bad_alloc and takes nothing.
template <class T>
class channel {
    static_assert(!std::is_same_v<T, detail::no_element_type>,
                  "a channel needs an element type: channel<int> numbers(5)");
    static_assert(!std::is_void_v<T>,
                  "a channel needs an element type: to signal an event without a value, use "
                  "a coil::counting_semaphore, or an empty struct");
    static_assert(!std::is_reference_v<T>,
                  "a channel stores its elements: send a pointer or a std::reference_wrapper");
    static_assert(!std::is_const_v<T>, "elements are moved out of a channel: not const");
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "a channel moves its elements between threads: the move must not throw");

public:
    /// Creates a channel that buffers `capacity` elements; 0 means no buffer. Throws
    /// std::bad_alloc.
    explicit channel(std::size_t capacity = 0) : core_(capacity, false) {}
    explicit channel(unbounded_t) : core_(0, true) {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() = default;
    /// Produce readable compiler errors.
    void operator co_await() const
        COIL_DELETE_COPY("receive from it, co_await c.recv(), or send to it, co_await c.send(x)");
    void begin() const COIL_DELETE_COPY("write while (auto x = co_await c.recv()) instead of for");
    void end() const COIL_DELETE_COPY("write while (auto x = co_await c.recv()) instead of for");

    /// co_await returns void: the value is in the channel or has been given to a receiver. On an
    /// unbounded channel, co_await throws std::bad_alloc if there is no memory for the element.
    send_awaitable<T> send(T value) noexcept { return send_awaitable<T>(core_, std::move(value)); }
    /// co_await returns an element, or nullopt once the channel is closed and drained.
    auto recv() noexcept {
        return detail::sync_awaitable<detail::receive_awaiter<T>, detail::channel_core<T>>(core_);
    }

    /// Sends all elements of `rest`, in order, as send() would do one after the other. Waits while
    /// the channel is full. Removes each element that was sent from `rest`:
    ///
    ///     std::span<job> rest(jobs);
    ///     co_await ch.send_many(rest);
    ///
    /// If it throws, or if its coroutine is destroyed, the elements in `rest` have not been sent
    /// and have their values. (An element is moved out of `rest` while it waits for space.) It
    /// throws what send() throws. `rest` and the elements must outlive the await, and must not be
    /// used until it has ended. Elements that others send may come in between. co_await returns
    /// void.
    COIL_CORO_WRAPPER task<> send_many(std::span<T>& rest COIL_LIFETIMEBOUND) {
        return detail::send_many<T>(core_, rest);
    }
    /// Waits until there is an element, or the channel is closed, and then takes up to
    /// `into.size()` elements that are available without waiting. Assigns them to the first objects
    /// of `into` in the order in which they were sent. co_await returns their number; 0 means that
    /// the channel is closed and drained, or that `into` is empty.
    ///
    ///     std::array<job, 64> jobs;
    ///     while (const std::size_t n = co_await ch.recv_many(jobs))
    ///         process(std::span(jobs).first(n));
    ///
    /// If it throws, it has taken nothing. It throws what recv() throws. `into` is written when the
    /// coroutine resumes, not before; it must outlive the await. The assignment of a T must not
    /// throw and must not use the channel.
    auto recv_many(std::span<T> into) noexcept {
        static_assert(std::is_nothrow_move_assignable_v<T>,
                      "recv_many() assigns to elements: the move assignment must not throw");
        return detail::receive_many_awaitable<T>(core_, into);
    }
    /// Produce readable compiler errors.
    template <std::ranges::range R>
        requires(!std::same_as<R, std::span<T>&>)
    task<> send_many(R&&) COIL_DELETE(
        "pass a std::span variable of the elements, which then contains what was not sent: "
        "std::span<T> rest(elements); co_await c.send_many(rest)");
    template <std::ranges::range R>
        requires(!std::is_lvalue_reference_v<R> && !std::ranges::borrowed_range<R>)
    task<> recv_many(R&&) COIL_DELETE(
        "the elements would be destroyed with the temporary: pass a named array, vector or span");

    /// Does not wait. Returns true if the value was sent. Returns false, with the value
    /// unchanged, if the channel is full or closed; is_closed() then tells which, because a closed
    /// channel stays closed:
    ///
    ///     if (!ch.try_send(std::move(x)))
    ///         ch.is_closed() ? stop() : retry_later(std::move(x));
    bool try_send(T&& value) {
        const detail::ring_result result = core_.try_push(value);
        if (result != detail::ring_result::would_block) [[likely]] {
            return result == detail::ring_result::done;
        }
        return try_send_with_lock(value);
    }
    bool try_send(const T& value) {
        T copy = value;
        return try_send(std::move(copy));
    }
    /// Does not wait. Returns an element, or nullopt if no element is available, whether or not the
    /// channel is closed. A closed channel may return another element later, if a receiver to which
    /// it was assigned is cancelled.
    [[nodiscard]] std::optional<T> try_recv() noexcept {
        std::optional<T> value;
        if (!core_.try_pop(value)) [[unlikely]] {
            receive_with_lock(value);
        }
        return value;
    }

    /// May be called from any thread. Closing a closed channel has no effect.
    void close() noexcept { core_.close(); }
    [[nodiscard]] bool is_closed() const noexcept { return core_.is_closed(); }
    /// 0 for a channel without a buffer and for an unbounded one.
    [[nodiscard]] std::size_t capacity() const noexcept { return core_.capacity(); }

private:
    // Out of line: an entry is many times larger than an element.
    [[gnu::noinline]] bool try_send_with_lock(T& value) {
        detail::channel_call<T> e(true);
        if (core_.is_unbounded()) {
            e.element = std::make_unique<detail::channel_element<T>>(std::move(value));
        } else {
            e.value.emplace(std::move(value));
        }
        bool done = false;
        core_.attempt_locked(e, done);
        if (done && !e.closed) {
            return true;
        }
        take_back(value, e);
        return false;
    }
    [[gnu::noinline]] void receive_with_lock(std::optional<T>& value) noexcept {
        detail::channel_call<T> e(false);
        bool done = false;
        core_.attempt_locked(e, done);
        if (e.value) {
            value.emplace(std::move(*e.value));
        }
    }
    static void take_back(T& value, detail::channel_entry<T>& e) noexcept {
        std::destroy_at(std::addressof(value));
        std::construct_at(std::addressof(value),
                          std::move(e.element ? *e.element->value : *e.value));
    }

    detail::channel_core<T> core_;
};

/// Produce readable compiler errors.
channel() -> channel<detail::no_element_type>;
template <std::integral Number>
channel(Number) -> channel<detail::no_element_type>;

/// The awaitable returned by channel::send(). It owns the value until it is awaited, which may
/// happen only once; a second await terminates the program with a message.
template <class T>
class [[nodiscard("did you forget to co_await?")]] send_awaitable
    : public detail::not_its_result<send_awaitable<T>> {
public:
    send_awaitable(detail::channel_core<T>& target, T&& value) noexcept
        : core_(&target), value_(std::move(value)) {}

    [[nodiscard, gnu::always_inline]] detail::send_awaiter<T> operator co_await() {
        if (core_ == nullptr) [[unlikely]] {
            detail::end_with_misuse("the result of channel::send() was awaited twice.");
        }
        return detail::send_awaiter<T>(*coil::detail::exchange(core_, nullptr), std::move(value_));
    }

private:
    detail::channel_core<T>* core_;
    T value_;
};

} // namespace coil
