#pragma once

// Shared by the models of primitives: a coroutine that waits, on its own context. Its steps are a
// copy of sync_waiter's; the wait queues and the inbox are the library's.

#include "model/parts.hpp"

#include <coil/sync/detail/baton.hpp>
#include <coil/sync/detail/permits.hpp>
#include <coil/sync/detail/wait_queue.hpp>

#include <cstdint>

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
    using lock_node = notice;

    notice enqueue_notice;
    notice cancel_notice;
    plain<sync_waiter*> later{nullptr};
    plain<sync_waiter*> earlier{nullptr};
    plain<bool> queued{false};
    plain<bool> cancelled{false};

    explicit sync_waiter(unsigned owner = 0) : owner_(owner) {
        enqueue_notice.waiter = this;
        cancel_notice.waiter = this;
    }

    /// Null for what runs after the threads have ended.
    static std::uintptr_t this_user() {
        const unsigned thread = rl::thread_index();
        return thread < 4U ? (thread + 1) * std::uintptr_t{4} : 0;
    }
    [[nodiscard]] bool is_here() const { return rl::thread_index() == owner_; }
    void notify(notice& n) {
        if (is_here()) {
            take(n);
        } else if (box_.push(n)) {
            wake_up_.write();
        }
    }

    // The following are called by the owner.
    template <class Queue>
    void leave(Queue& queue) {
        if (!ended()) {
            ack_due_ = Steps::waits_for_answer;
            queue.leave(*this);
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
    /// Like a destructor, which waits without sleeping.
    void deliver_until_over() {
        while (!ended()) {
            deliver_inbox();
            rl::yield(1, RL_INFO);
        }
    }
    [[nodiscard]] bool ended() const { return completed_ && !ack_due_; }
    /// The frame is destroyed.
    void destroy_frame() {
        require(box_.take_all() == nullptr, "nothing comes after the end");
        enqueue_notice.next = nullptr; // races with a thread that still uses it
        cancel_notice.next = nullptr;
        queued = false;
    }

private:
    void take(notice& n) {
        if (&n == &enqueue_notice) {
            require(!completed_, "notified once");
            completed_ = true;
        } else {
            ack_due_ = false;
            completed_ = completed_ || cancelled;
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
    wake_up_fd wake_up_;
    unsigned owner_;
    bool completed_ = false;
    bool ack_due_ = false;
};

} // namespace coil_model
