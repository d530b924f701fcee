#pragma once

#include <coil/sync/detail/channel_core.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

struct unbounded_t {
    explicit unbounded_t() = default;
};
/// channel<T> ch{unbounded}: send() never waits for room.
inline constexpr unbounded_t unbounded{};

namespace detail {

/// Throws std::system_error with std::errc::broken_pipe.
[[noreturn]] void throw_channel_closed();
/// Gives the same exception to the context's on_unhandled_exception.
void report_channel_closed() noexcept;

template <class T>
struct channel_entry : sync_waiter {
    explicit channel_entry(bool is_sender) noexcept : sends(is_sender) {}

    std::optional<T> value;
    std::unique_ptr<channel_element<T>> element;
    const bool sends;
    bool closed = false;
};

template <class T>
using channel_core = basic_channel<T, channel_entry<T>, sync_waiter>;

template <class T>
class receive_awaiter : public sync_awaiter<receive_awaiter<T>, channel_entry<T>> {
public:
    explicit receive_awaiter(channel_core<T>& source) noexcept
        : sync_awaiter<receive_awaiter<T>, channel_entry<T>>(false), core_(source) {}
    ~receive_awaiter() { this->end_wait(); }

    std::optional<T> await_resume() {
        if (!this->succeeded()) [[unlikely]] {
            throw_wait_cancelled("channel::recv");
        }
        return std::move(this->value);
    }

private:
    friend class sync_awaiter<receive_awaiter<T>, channel_entry<T>>;
    static constexpr bool gives_back = true;

    [[nodiscard]] bool take_now() noexcept { return core_.receive_now(*this); }
    [[nodiscard]] channel_core<T>& room() noexcept { return core_; }
    void give_back() noexcept {
        if (this->value) {
            core_.give_back(std::move(*this->value));
        }
    }

    channel_core<T>& core_;
};

template <class T>
class send_awaiter : public sync_awaiter<send_awaiter<T>, channel_entry<T>> {
public:
    send_awaiter(channel_core<T>& target, T&& value)
        : sync_awaiter<send_awaiter<T>, channel_entry<T>>(true), core_(target) {
        if (core_.is_unbounded()) {
            this->element = std::make_unique<channel_element<T>>(std::move(value));
        } else {
            this->value.emplace(std::move(value));
        }
    }
    ~send_awaiter() { this->end_wait(); }

    [[nodiscard]] bool has_failed() noexcept { return !this->succeeded() || this->closed; }
    /// That the channel was closed before the value was in it does not go unnoticed.
    void discard() noexcept {
        if (has_failed() && !this->cancelled) {
            report_channel_closed();
        }
    }

    void await_resume() {
        if (!this->succeeded()) [[unlikely]] {
            throw_wait_cancelled("channel::send");
        }
        if (this->closed) [[unlikely]] {
            throw_channel_closed();
        }
    }

private:
    friend class sync_awaiter<send_awaiter<T>, channel_entry<T>>;
    static constexpr bool gives_back = false;

    [[nodiscard]] bool take_now() noexcept { return core_.send_now(*this); }
    [[nodiscard]] channel_core<T>& room() noexcept { return core_; }
    void give_back() noexcept {}

    channel_core<T>& core_;
};

} // namespace detail

/// What channel::send() gives: co_await it once. It holds the value until then. Awaited again, it
/// has none, and the program ends with a message.
template <class T>
class [[nodiscard("did you forget to co_await?")]] send_awaitable {
public:
    send_awaitable(detail::channel_core<T>& target, T&& value) noexcept
        : core_(&target), value_(std::move(value)) {}

    [[nodiscard]] detail::send_awaiter<T> operator co_await() {
        if (core_ == nullptr) [[unlikely]] {
            detail::end_with_misuse("what channel::send() gave was awaited twice.");
        }
        return detail::send_awaiter<T>(*std::exchange(core_, nullptr), std::move(value_));
    }

private:
    detail::channel_core<T>* core_;
    T value_;
};

/// A queue between coroutines, with room for a number of elements, or none, or any number; closed
/// as in Go.
///
///     coil::channel<int> ch{16};
///     // one coroutine                          // another
///     for (int i = 0; i < 100; ++i)             while (auto n = co_await ch.recv())
///         co_await ch.send(i);                      use(*n);
///     ch.close();
///
/// Without room (`channel<T> ch;`) send() waits until a receiver takes the value.
///
/// Any number of senders and receivers. Elements come out in the order in which they went in; who
/// waits is served first come, first served. After close() what is in it still comes out, then
/// recv() gives nullopt; send(), also one that waits already, throws std::system_error with
/// std::errc::broken_pipe.
///
/// Threading: any context and any thread. Who waits goes on on its own context. Elements may be
/// moved on any of these threads; moving one must not throw, and must not use the channel. The
/// channel must outlive every call and every wait on it.
///
/// Cancellation: send() and recv() of a task that is asked to stop throw std::system_error with
/// std::errc::operation_canceled. Such a recv() has taken nothing: an element that was handed to it
/// before it went on, or before its coroutine was destroyed, comes out next. (It then may come
/// after a younger one that another receiver took meanwhile; and when there is no memory for
/// keeping it beyond the channel's room, it is lost.) Such a send() has sent nothing; one whose
/// value was taken reports that.
template <class T>
class channel {
    static_assert(!std::is_void_v<T>,
                  "a channel has elements: where only that something happens is to be told, use "
                  "a coil::counting_semaphore, or an empty struct");
    static_assert(!std::is_reference_v<T>,
                  "a channel keeps its elements: send a pointer or a std::reference_wrapper");
    static_assert(!std::is_const_v<T>, "elements are moved out of a channel: not const");
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "a channel moves its elements between threads: that must not throw");

public:
    /// Room for so many; 0: none. Throws std::bad_alloc.
    explicit channel(std::size_t capacity = 0) : core_(capacity, false) {}
    explicit channel(unbounded_t) : core_(0, true) {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() = default;

    /// co_await gives nothing; the value is in the channel, or with a receiver. Unbounded: throws
    /// std::bad_alloc when it is awaited.
    send_awaitable<T> send(T value) noexcept { return send_awaitable<T>(core_, std::move(value)); }
    /// co_await gives an element, or nullopt: closed, and nothing is left.
    auto recv() noexcept {
        return detail::sync_awaitable<detail::receive_awaiter<T>, detail::channel_core<T>>(core_);
    }

    /// Does not wait. True: sent, and moved from. False: there is no room, or it is closed.
    bool try_send(T&& value) {
        detail::channel_entry<T> e(true);
        if (core_.is_unbounded()) {
            if (core_.is_closed()) {
                return false;
            }
            e.element = std::make_unique<detail::channel_element<T>>(std::move(value));
        } else {
            const detail::ring_answer answer = core_.try_push(value);
            if (answer != detail::ring_answer::not_now) {
                return answer == detail::ring_answer::done;
            }
            e.value.emplace(std::move(value));
        }
        bool done = false;
        core_.attempt_in_turn(e, done);
        if (done && !e.closed) {
            return true;
        }
        take_back(value, e);
        return false;
    }
    bool try_send(const T& value) {
        T copy = value;
        return try_send(std::move(copy));
    }
    /// Does not wait: an element, or nullopt when there is none (closed or not).
    [[nodiscard]] std::optional<T> try_recv() noexcept {
        detail::channel_entry<T> e(false);
        bool done = core_.try_pop(e.value);
        if (!done) {
            core_.attempt_in_turn(e, done);
        }
        return std::move(e.value);
    }

    /// From any thread; again: nothing.
    void close() noexcept { core_.close(); }
    [[nodiscard]] bool is_closed() const noexcept { return core_.is_closed(); }
    /// 0: without room, or unbounded.
    [[nodiscard]] std::size_t capacity() const noexcept { return core_.capacity(); }

private:
    static void take_back(T& value, detail::channel_entry<T>& e) noexcept {
        std::destroy_at(std::addressof(value));
        std::construct_at(std::addressof(value),
                          std::move(e.element ? e.element->value : *e.value));
    }

    detail::channel_core<T> core_;
};

} // namespace coil
