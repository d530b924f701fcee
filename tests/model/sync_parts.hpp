#pragma once

// Shared by the models of primitives: a coroutine that waits, on its own context. Its steps are a
// copy of sync_waiter's; the rooms and the inbox are the library's.

#include "model/parts.hpp"

#include <coil/sync/detail/baton.hpp>
#include <coil/sync/detail/permits.hpp>
#include <coil/sync/detail/wait_queue.hpp>

namespace coil_model {

struct patient {
    static constexpr bool waits_for_answer = true;
};
struct hasty_leaver {
    static constexpr bool waits_for_answer = false;
};

/// Thread number `owner` of the model is its context's thread.
template <class Change, class Steps = patient>
class sync_waiter {
public:
    struct notice {
        plain<notice*> next{nullptr};
        sync_waiter* waiter = nullptr;
    };
    using turn_node = notice;

    notice arrival;
    notice departure;
    plain<sync_waiter*> later{nullptr};
    plain<sync_waiter*> earlier{nullptr};
    plain<bool> queued{false};
    plain<bool> cancelled{false};

    explicit sync_waiter(unsigned owner = 0) : owner_(owner) {
        arrival.waiter = this;
        departure.waiter = this;
    }

    [[nodiscard]] bool is_here() const { return rl::thread_index() == owner_; }
    void tell(notice& n) {
        if (is_here()) {
            take(n);
        } else if (box_.push(n)) {
            wake_up_.ring();
        }
    }

    // The following are called by the owner.
    template <class Room>
    void leave(Room& room) {
        if (!ended()) {
            answer_due_ = Steps::waits_for_answer;
            room.leave(*this);
        }
    }
    void sleep_until_over() {
        while (!ended()) {
            if (box_.try_park()) {
                wake_up_.wait();
                box_.unpark();
            }
            deliver_inbox();
        }
    }
    /// As a destructor does.
    void deliver_until_over() {
        while (!ended()) {
            deliver_inbox();
            rl::yield(1, RL_INFO);
        }
    }
    [[nodiscard]] bool ended() const { return over_ && !answer_due_; }
    /// The frame is destroyed.
    void go() {
        require(box_.take_all() == nullptr, "nothing comes after the end");
        arrival.next = nullptr; // races with a thread that still uses it
        departure.next = nullptr;
        queued = false;
    }

private:
    void take(notice& n) {
        if (&n == &arrival) {
            require(!over_, "told once");
            over_ = true;
        } else {
            answer_due_ = false;
            over_ = over_ || cancelled;
        }
    }
    void deliver_inbox() {
        for (notice* n = box_.take_all(); n != nullptr;) {
            notice* const following = n->next;
            take(*n);
            n = following;
        }
    }

    inbox_of<notice, Change> box_;
    bell wake_up_;
    unsigned owner_;
    bool over_ = false;
    bool answer_due_ = false;
};

} // namespace coil_model
