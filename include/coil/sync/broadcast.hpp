#pragma once

#include <coil/sync/detail/wait_room.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil {

namespace detail {

template <class T>
struct broadcast_entry : sync_waiter {
    std::uint64_t position = 0; // of the element that it waits for
};

/// The elements are the turn's. Who waits is told that there is one, and takes it when it goes on.
template <class T>
class broadcast_core : public basic_wait_room<broadcast_core<T>, sync_waiter> {
public:
    using room = basic_wait_room<broadcast_core<T>, sync_waiter>;
    using typename room::told;
    using pointer = std::shared_ptr<const T>;

    explicit broadcast_core(std::size_t capacity) : last_(capacity) {}

    /// False: it is closed.
    bool send(pointer element) noexcept {
        bool open = true;
        this->in_turn([&](told& t) {
            open = !this->turn_.is_open();
            if (open) {
                last_[next_ % last_.size()].swap(element);
                ++next_;
                look(t);
            }
        });
        return open;
    }
    void close() noexcept { this->signal(this->turn_.open); }
    [[nodiscard]] bool is_closed() const noexcept { return this->turn_.is_open(); }

    [[nodiscard]] std::uint64_t next() noexcept {
        std::uint64_t position = 0;
        this->in_turn([&](told&) { position = next_; });
        return position;
    }
    /// The element at `position`, or the oldest there is, and moves on. False: there is none yet.
    [[nodiscard]] bool take(std::uint64_t& position, std::uint64_t& missed,
                            pointer& element) noexcept {
        bool done = false;
        this->in_turn([&](told&) {
            if (position == next_) {
                done = this->turn_.is_open();
                return;
            }
            const std::uint64_t oldest = next_ > last_.size() ? next_ - last_.size() : 0;
            if (position < oldest) {
                missed += oldest - position;
                position = oldest;
            }
            element = last_[position % last_.size()];
            ++position;
            done = true;
        });
        return done;
    }

private:
    friend room;

    void arrive(sync_waiter& w, told& t) noexcept {
        if (this->turn_.is_open() || static_cast<broadcast_entry<T>&>(w).position != next_) {
            t.over(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_leave(sync_waiter&) noexcept { return true; }
    void left(told&) noexcept {}
    void look(told& t) noexcept {
        while (!this->queue_.empty()) {
            t.over(this->queue_.pop());
        }
    }

    std::vector<pointer> last_; // as many as there is room for
    std::uint64_t next_ = 0;
};

} // namespace detail

/// Every receiver gets every element that is sent after it subscribed.
///
///     coil::broadcast<message> news{64};
///     auto mine = news.subscribe();
///     while (auto m = co_await mine.recv())
///         use(*m);
///
/// send() does not wait. A receiver that is more than `capacity` elements behind goes on with the
/// oldest that is still there, and missed() says how many it has lost. After close() receivers get
/// what they have not had yet, then nullopt.
///
/// Threading: any context and any thread; a receiver is one coroutine's at a time. Who waits goes
/// on on its own context. Calls wait a moment for each other. The broadcast outlives its receivers.
///
/// Cancellation: recv() of a task that is asked to stop throws std::system_error with
/// std::errc::operation_canceled, and the element, if there is one, is the next recv()'s.
template <class T>
class broadcast {
    static_assert(std::is_object_v<T>, "a broadcast keeps elements: neither void nor references");
    static_assert(std::is_copy_constructible_v<T>,
                  "each receiver gets a copy: broadcast a std::shared_ptr, or use a channel");
    using core = detail::broadcast_core<T>;

public:
    class receiver;

    /// How many elements are kept. Throws std::bad_alloc. None: the program ends with a message.
    explicit broadcast(std::size_t capacity) : core_(capacity) {
        if (capacity == 0) [[unlikely]] {
            detail::end_with_misuse("a broadcast keeps at least one element.");
        }
    }
    broadcast(const broadcast&) = delete;
    broadcast& operator=(const broadcast&) = delete;
    ~broadcast() = default;

    /// False: it is closed. Throws std::bad_alloc.
    bool send(T value) {
        return !core_.is_closed() && core_.send(std::make_shared<const T>(std::move(value)));
    }
    void close() noexcept { core_.close(); }
    [[nodiscard]] bool is_closed() const noexcept { return core_.is_closed(); }
    /// A receiver of what is sent from now on.
    [[nodiscard]] receiver subscribe() noexcept { return receiver(core_, core_.next()); }

private:
    class awaiter;

    core core_;
};

/// A place in a broadcast. A copy is another receiver that gets the same from there on.
template <class T>
class broadcast<T>::receiver {
public:
    /// co_await gives a copy of the next element, or nullopt: closed, and nothing is left.
    auto recv() noexcept { return detail::sync_awaitable<awaiter, receiver>(*this); }
    /// Does not wait: nullopt also when there is none yet.
    [[nodiscard]] std::optional<T> try_recv() {
        typename core::pointer element;
        if (core_->take(position_, missed_, element) && element != nullptr) {
            return *element;
        }
        return std::nullopt;
    }
    /// How many elements were gone before it came for them, in all.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

private:
    friend class broadcast;
    friend class awaiter;
    receiver(core& source, std::uint64_t position) noexcept : core_(&source), position_(position) {}

    core* core_;
    std::uint64_t position_;
    std::uint64_t missed_ = 0;
};

template <class T>
class broadcast<T>::awaiter : public detail::sync_awaiter<awaiter, detail::broadcast_entry<T>> {
    using base = detail::sync_awaiter<awaiter, detail::broadcast_entry<T>>;

public:
    explicit awaiter(receiver& source) noexcept : source_(source), missed_before_(source.missed_) {
        this->position = source.position_;
    }
    ~awaiter() { this->end_wait(); }

    std::optional<T> await_resume() {
        if (!this->succeeded()) [[unlikely]] {
            detail::throw_wait_cancelled("broadcast");
        }
        if (!taken_) {
            static_cast<void>(take_now());
        }
        if (element_ == nullptr) {
            return std::nullopt;
        }
        return *element_;
    }

private:
    friend base;
    static constexpr bool gives_back = true; // it is taken when the coroutine goes on

    [[nodiscard]] bool take_now() noexcept {
        taken_ = source_.core_->take(source_.position_, source_.missed_, element_);
        return taken_;
    }
    [[nodiscard]] core& room() noexcept { return *source_.core_; }
    void give_back() noexcept {
        if (taken_) { // the receiver is this coroutine's: nobody else has moved on
            source_.position_ = this->position;
            source_.missed_ = missed_before_;
        }
    }

    receiver& source_;
    std::uint64_t missed_before_;
    typename core::pointer element_;
    bool taken_ = false;
};

} // namespace coil
