#pragma once

#include <coil/sync/detail/wait_queue.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace coil::detail {

template <class T>
struct broadcast_entry : sync_waiter {
    std::uint64_t position = 0; // index of the element that the receiver waits for
};

/// The combining lock protects the elements. A waiter is only notified; it takes the element when
/// it resumes.
template <class T>
class broadcast_core : public basic_wait_queue<broadcast_core<T>, sync_waiter> {
public:
    using wait_queue = basic_wait_queue<broadcast_core<T>, sync_waiter>;
    using typename wait_queue::woken;
    using pointer = std::shared_ptr<const T>;

    explicit broadcast_core(std::size_t capacity) : last_(capacity) {}

    /// Returns false if the broadcast is closed.
    bool send(pointer element) noexcept {
        bool open = true;
        this->with_lock([&](woken& t) {
            open = !this->combining_lock_.is_open();
            if (open) {
                last_[next_ % last_.size()].swap(element);
                ++next_;
                on_signal(t);
            }
        });
        return open;
    }
    void close() noexcept { this->signal(this->combining_lock_.open); }
    [[nodiscard]] bool is_closed() const noexcept { return this->combining_lock_.is_open(); }

    [[nodiscard]] std::uint64_t next() noexcept {
        std::uint64_t position = 0;
        this->with_lock([&](woken&) { position = next_; });
        return position;
    }
    /// Takes the element at `position`, or the oldest one kept, and advances `position`. Returns
    /// false if the caller has to wait. Once the broadcast is closed and drained, returns true
    /// and leaves `element` null.
    [[nodiscard]] bool take(std::uint64_t& position, std::uint64_t& lagged,
                            pointer& element) noexcept {
        bool done = false;
        this->with_lock([&](woken&) {
            if (position == next_) {
                done = this->combining_lock_.is_open();
                return;
            }
            const std::uint64_t oldest = next_ > last_.size() ? next_ - last_.size() : 0;
            if (position < oldest) {
                lagged += oldest - position;
                position = oldest;
            }
            element = last_[position % last_.size()];
            ++position;
            done = true;
        });
        return done;
    }

private:
    friend wait_queue;

    void enqueue(sync_waiter& w, woken& t) noexcept {
        if (this->combining_lock_.is_open() ||
            static_cast<broadcast_entry<T>&>(w).position != next_) {
            t.complete(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_cancel(sync_waiter&) noexcept { return true; }
    void on_cancelled(woken&) noexcept {}
    void on_signal(woken& t) noexcept {
        while (!this->queue_.empty()) {
            t.complete(this->queue_.pop());
        }
    }

    std::vector<pointer> last_; // ring of the latest elements
    std::uint64_t next_ = 0;
};

} // namespace coil::detail
