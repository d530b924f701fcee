#pragma once

#include <coil/core/config.hpp>
#include <coil/sync/detail/broadcast_core.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil {

/// A multi-consumer queue in which every receiver gets every element sent after it subscribed, like
/// tokio::sync::broadcast.
///
///     coil::broadcast<message> news{64};
///     auto mine = news.subscribe();
///     while (auto m = co_await mine.recv())
///         use(*m);
///
/// send() never waits. A receiver that falls more than `capacity` elements behind continues with
/// the oldest element still stored, and lagged() counts the elements it has missed. After close(),
/// receivers get the remaining elements, then nullopt.
///
/// recv() copies the element for its receiver. recv_shared() returns a pointer to the one element
/// that all receivers share.
///
/// Threading: all members may be called from any context and any thread; a receiver is used by one
/// coroutine at a time. A waiter resumes on its own context. Concurrent calls serialize on a short
/// spin lock. The broadcast must outlive its receivers.
///
/// Cancellation: if the waiting task is asked to stop, recv() throws std::system_error with
/// std::errc::operation_canceled. An element that is already available is returned by the next
/// recv().
template <class T>
class broadcast {
    static_assert(std::is_object_v<T>, "a broadcast keeps elements: neither void nor references");
    using core = detail::broadcast_core<T>;

public:
    class receiver;

    /// Keeps the latest `capacity` elements. Throws std::bad_alloc. A capacity of 0 terminates the
    /// program with a message.
    explicit broadcast(std::size_t capacity) : core_(capacity) {
        if (capacity == 0) [[unlikely]] {
            detail::end_with_misuse("a broadcast keeps at least one element.");
        }
    }
    broadcast(const broadcast&) = delete;
    broadcast& operator=(const broadcast&) = delete;
    ~broadcast() = default;
    /// Produce readable compiler errors.
    void recv() COIL_DELETE("subscribe first: auto mine = b.subscribe(); co_await mine.recv()");
    void operator co_await() const
        COIL_DELETE_COPY("subscribe first: auto mine = b.subscribe(); co_await mine.recv()");

    /// Returns false if the broadcast is closed. Throws std::bad_alloc.
    bool send(T value) { return send_shared(std::make_shared<const T>(std::move(value))); }
    /// Produces a readable compiler error.
    template <class U>
        requires(!std::is_convertible_v<U &&, T>)
    bool send(U&&) COIL_DELETE("this cannot be converted to T, the element of this broadcast<T>");
    /// The same for an element that is shared already. A null pointer terminates the program with a
    /// message.
    bool send_shared(std::shared_ptr<const T> value) {
        if (value == nullptr) [[unlikely]] {
            detail::end_with_misuse("a broadcast was sent a null pointer.");
        }
        return !core_.is_closed() && core_.send(std::move(value));
    }
    void close() noexcept { core_.close(); }
    [[nodiscard]] bool is_closed() const noexcept { return core_.is_closed(); }
    /// Returns a receiver of all elements sent from now on.
    [[nodiscard]] receiver subscribe() noexcept { return receiver(core_, core_.next()); }

private:
    using copied = std::optional<T>;
    using shared = std::shared_ptr<const T>;
    template <class Result>
    class awaiter;

    core core_;
};

/// A read position in a broadcast. A copy is an independent receiver that starts at the same
/// position.
template <class T>
class broadcast<T>::receiver {
public:
    /// co_await returns a copy of the next element, or nullopt once the broadcast is closed and
    /// drained.
    auto recv() noexcept
        requires std::is_copy_constructible_v<T>
    {
        return detail::sync_awaitable<awaiter<copied>, receiver>(*this);
    }
    /// Produces a readable compiler error.
    template <class U = T>
        requires(!std::is_copy_constructible_v<U>)
    void recv() COIL_DELETE(
        "recv() copies the element, which cannot be copied: recv_shared() returns a pointer to it");
    /// co_await returns a pointer to the next element, without copying it, or null once the
    /// broadcast is closed and drained.
    auto recv_shared() noexcept { return detail::sync_awaitable<awaiter<shared>, receiver>(*this); }
    /// Does not wait. Returns nullopt if no element is available, whether or not the broadcast is
    /// closed.
    [[nodiscard]] std::optional<T> try_recv() {
        const std::shared_ptr<const T> element = try_recv_shared();
        return element == nullptr ? std::nullopt : std::optional<T>(*element);
    }
    [[nodiscard]] std::shared_ptr<const T> try_recv_shared() {
        typename core::pointer element;
        (void)core_->take(position_, lagged_, element);
        return element;
    }
    /// The number of elements that were overwritten before this receiver read them.
    [[nodiscard]] std::uint64_t lagged() const noexcept { return lagged_; }

    /// The former name; it will be removed in the next release.
    [[nodiscard, deprecated("use lagged()")]] std::uint64_t missed() const noexcept { // retired
        return lagged();
    }

private:
    friend class broadcast;
    template <class Result>
    friend class awaiter;
    receiver(core& source, std::uint64_t position) noexcept : core_(&source), position_(position) {}

    core* core_;
    std::uint64_t position_;
    std::uint64_t lagged_ = 0;
};

/// `Result` is copied or shared: what recv() and recv_shared() return.
template <class T>
template <class Result>
class broadcast<T>::awaiter
    : public detail::sync_awaiter<typename broadcast<T>::template awaiter<Result>,
                                  detail::broadcast_entry<T>> {
    using base = detail::sync_awaiter<awaiter, detail::broadcast_entry<T>>;

public:
    explicit awaiter(receiver& source) noexcept : source_(source), lagged_before_(source.lagged_) {
        this->position = source.position_;
    }
    ~awaiter() { this->end_wait(); }

    Result await_resume() {
        this->throw_if_cancelled("broadcast");
        if (!taken_) {
            static_cast<void>(take_now());
        }
        if constexpr (std::is_same_v<Result, shared>) {
            return std::move(element_);
        } else {
            return element_ == nullptr ? Result() : Result(*element_);
        }
    }

private:
    friend base;
    static constexpr detail::waited_object waits_for = detail::waited_object::broadcast;
    static constexpr bool gives_back = true; // the element is taken when the coroutine resumes

    [[nodiscard]] bool take_now() noexcept {
        taken_ = source_.core_->take(source_.position_, source_.lagged_, element_);
        return taken_;
    }
    [[nodiscard]] core& queue() noexcept { return *source_.core_; }
    void give_back() noexcept {
        // the receiver belongs to this coroutine, so its position has not changed since
        if (taken_) {
            source_.position_ = this->position;
            source_.lagged_ = lagged_before_;
        }
    }

    receiver& source_;
    std::uint64_t lagged_before_;
    typename core::pointer element_;
    bool taken_ = false;
};

} // namespace coil
