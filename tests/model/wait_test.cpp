// An await that another thread stops: the stop callback posts the await's own node to the owner's
// inbox, and the frame is neither resumed nor destroyed before that node has arrived. The steps are
// a copy of awaiter_base's; the inbox and the stop source are the library's.

#include "model/parts.hpp"

#include <coil/context/detail/inbox.hpp>
#include <coil/core/detail/stop_state.hpp>

namespace {

using namespace coil_model;

/// One node for both lists, in succession.
struct node {
    plain<node*> next{nullptr};
    plain<plain<node*>*> link_{nullptr};
    void (*on_stop)(node&) = nullptr;
};

struct faithful_wait {
    static constexpr bool waits_for_delivery = true;
};
struct hasty_wait {
    static constexpr bool waits_for_delivery = false;
};

template <class Change, class Steps = faithful_wait>
class stoppable_wait {
public:
    stoppable_wait() {
        word_.store(pending, std::memory_order_relaxed);
        link_.self = this;
        link_.on_stop = [](node& n) { static_cast<link&>(n).self->post_stop(); };
        source_.insert(link_);
    }

    void request_stop() { source_.request(); }

    /// The operation completes.
    void finish() {
        source_.erase(link_);
        const bool comes = Steps::waits_for_delivery && stop_is_coming();
        enter(done);
        ready_ = !comes; // otherwise the delivery makes it ready
    }
    void sleep_until_ready() {
        while (!ready_) {
            if (box_.try_park()) {
                wake_up_.wait();
                box_.unpark();
            }
            deliver_inbox();
        }
    }
    /// The frame is destroyed while the operation is in flight.
    void stop_observing() {
        source_.erase(link_);
        while (Steps::waits_for_delivery && stop_is_coming()) {
            deliver_inbox();
        }
    }
    void destroy() {
        require(there_, "once");
        there_ = false;
    }
    [[nodiscard]] bool was_cancelled() const { return cancelled_; }
    [[nodiscard]] bool inbox_is_empty() { return box_.take_all() == nullptr; }

private:
    struct link : node {
        stoppable_wait* self = nullptr;
    };
    static constexpr unsigned pending = 1;
    static constexpr unsigned done = 2;
    static constexpr unsigned phase_mask = 3;
    static constexpr unsigned posted = 4;
    static constexpr unsigned delivered = 8;

    void enter(unsigned phase) {
        word_.store((word_.load(std::memory_order_relaxed) & ~phase_mask) | phase,
                    std::memory_order_relaxed);
    }
    [[nodiscard]] bool stop_is_coming() const {
        return (word_.load(std::memory_order_relaxed) & (posted | delivered)) == posted;
    }
    // Called by the thread that stops.
    void post_stop() {
        require(there_, "the frame exists");
        word_.fetch_or(posted, std::memory_order_relaxed);
        if (box_.push(link_)) {
            wake_up_.write();
        }
    }
    void deliver_inbox() {
        for (node* n = box_.take_all(); n != nullptr; n = n->next) {
            require(n == &link_ && there_, "the frame exists");
            word_.fetch_or(delivered, std::memory_order_relaxed);
            if ((word_.load(std::memory_order_relaxed) & phase_mask) == done) {
                ready_ = true;
            } else {
                cancelled_ = true;
                finish();
            }
        }
    }

    coil::detail::basic_inbox<node, atomics<Change>> box_;
    coil::detail::basic_stop_state<node, atomics<Change>> source_;
    link link_;
    atomic<unsigned, Change> word_{0};
    wake_up_fd wake_up_;
    plain<bool> there_{true};
    bool ready_ = false;
    bool cancelled_ = false;
};

template <class Change, class Steps = faithful_wait>
struct completes : stoppable_wait<Change, Steps> {
    static constexpr int threads = 2;

    void thread(unsigned number) {
        if (number == 0) {
            this->finish();
            this->sleep_until_ready();
            this->destroy();
        } else {
            this->request_stop();
        }
    }
    void after() { require(this->inbox_is_empty(), "no node of a destroyed frame"); }
};

template <class Change>
struct is_stopped : stoppable_wait<Change> {
    static constexpr int threads = 2;

    void thread(unsigned number) {
        if (number == 0) {
            this->sleep_until_ready();
            require(this->was_cancelled(), "it ended by the stop");
            this->destroy();
        } else {
            this->request_stop();
        }
    }
    void after() { require(this->inbox_is_empty(), "no node of a destroyed frame"); }
};

template <class Change>
struct is_destroyed : stoppable_wait<Change> {
    static constexpr int threads = 2;

    void thread(unsigned number) {
        if (number == 0) {
            this->stop_observing();
            this->destroy();
        } else {
            this->request_stop();
        }
    }
    void after() { require(this->inbox_is_empty(), "no node of a destroyed frame"); }
};

TEST(WaitModelG1, CompletesWhileItIsStopped_FourInterruptions) {
    expect_proof<completes<as_written>>(at_most{4});
}
TEST(WaitModelG1, SleepsUntilItIsStopped_FourInterruptions) {
    expect_proof<is_stopped<without_spurious_failures>>(at_most{4});
}
TEST(WaitModelG1, IsDestroyedWhileItIsStopped_FourInterruptions) {
    expect_proof<is_destroyed<without_spurious_failures>>(at_most{4});
}

// Canaries.

TEST(WaitModelCanary, AFrameDestroyedBeforeItsNodeHasArrived) {
    expect_found<completes<as_written, hasty_wait>>(rl::test_result_user_assert_failed, at_most{4});
}

TEST(WaitModelCanary, ADetachThatAcquiresNothing) {
    expect_found<completes<relaxed<call::load>>>(rl::test_result_data_race, at_most{4});
}

} // namespace
