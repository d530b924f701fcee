// A task and its joiner: the result is visible, the joiner is notified once, and their shared state
// is freed once and not accessed afterwards.

#include "model/parts.hpp"

#include <coil/context/detail/join_handshake.hpp>

namespace {

using namespace coil_model;

/// A join_state: the handshake and the outcome, freed by the second of its owners.
template <class Change>
struct shared {
    coil::detail::basic_join_handshake<message, atomics<Change>> handshake;
    plain<int> outcome{0};
    plain<bool> freed{false};

    void release() {
        if (handshake.release_one()) {
            require(!freed, "freed once");
            require(outcome != 0, "the task has stored its outcome");
            freed = true;
        }
    }
};

/// A joiner's context: the task posts to its inbox.
template <class Change>
struct joiner {
    inbox<Change> box;
    wake_up_fd wake_up;
    message waiter;
    plain<bool> there{true}; // the awaiter exists
    int notified = 0;

    void deliver_inbox() {
        for (message* l = box.take_all(); l != nullptr;) {
            message* const following = l->next;
            require(l == &waiter, "the waiter");
            ++notified;
            l = following;
        }
    }
    void sleep_until_notified() {
        while (notified == 0) {
            if (box.try_park()) {
                wake_up.wait();
                box.unpark();
            }
            deliver_inbox();
        }
        require(notified == 1, "notified once");
        there = false;
    }
};

template <class Change, int Joiners>
struct task_and_joiners {
    static constexpr int threads = 1 + Joiners;

    shared<Change> state;
    joiner<Change> joiners[Joiners];

    void run_task() {
        state.outcome = 42;
        if (message* waiter = state.handshake.mark_done()) {
            for (auto& j : joiners) {
                if (&j.waiter == waiter) {
                    require(j.there, "a withdrawn waiter is not notified");
                    if (j.box.push(*waiter)) {
                        j.wake_up.write();
                    }
                }
            }
        }
        state.release();
    }

    void await_and_take(joiner<Change>& me) {
        if (!state.handshake.done()) {
            if (state.handshake.register_waiter(me.waiter)) {
                me.sleep_until_notified();
            } else {
                require(state.handshake.done(), "there is no other waiter");
            }
        }
        require(state.outcome == 42, "the result is there");
    }

    /// The awaiting frame is destroyed while it waits, as in ~awaiter().
    void await_and_be_destroyed(joiner<Change>& me) {
        if (state.handshake.done() || !state.handshake.register_waiter(me.waiter)) {
            return;
        }
        if (!state.handshake.withdraw_waiter(me.waiter)) {
            while (me.notified == 0) {
                me.deliver_inbox();
                rl::yield(1, RL_INFO);
            }
        }
        me.there = false;
    }

    void after() { require(state.freed, "freed"); }
};

template <class Change>
struct awaited : task_and_joiners<Change, 1> {
    void thread(unsigned number) {
        if (number == 0) {
            this->run_task();
        } else {
            this->await_and_take(this->joiners[0]);
            this->state.release();
        }
    }
};

template <class Change>
struct dropped : task_and_joiners<Change, 1> {
    void thread(unsigned number) {
        if (number == 0) {
            this->run_task();
        } else {
            this->state.release();
        }
    }
};

template <class Change>
struct destroyed : task_and_joiners<Change, 1> {
    void thread(unsigned number) {
        if (number == 0) {
            this->run_task();
        } else {
            this->await_and_be_destroyed(this->joiners[0]);
            this->state.release();
        }
    }
};

/// The handle moves to a third thread after the second one has stopped waiting.
template <class Change>
struct handed_over : task_and_joiners<Change, 2> {
    wake_up_fd handle;

    void thread(unsigned number) {
        if (number == 0) {
            this->run_task();
        } else if (number == 1) {
            this->await_and_be_destroyed(this->joiners[0]);
            handle.write();
        } else {
            handle.wait();
            this->await_and_take(this->joiners[1]);
            this->state.release();
        }
    }
};

TEST(JoinModelG9, AwaitedOnAnotherContext) { expect_proof<awaited<as_written>>(everything{}); }
TEST(JoinModelG9, HandleDropped) { expect_proof<dropped<as_written>>(everything{}); }
TEST(JoinModelG9, DestroyedWhileItWaits) { expect_proof<destroyed<as_written>>(everything{}); }
TEST(JoinModelG9, HandleGoesToAThirdThread) {
    expect_proof<handed_over<without_spurious_failures>>(everything{});
}

// Canaries.

TEST(JoinModelCanary, AnEndThatPublishesNothing) {
    expect_found<awaited<relaxed<call::exchange>>>(rl::test_result_data_race, everything{});
}

TEST(JoinModelCanary, AReleaseThatOrdersNothing) {
    expect_found<dropped<relaxed<call::fetch_add>>>(rl::test_result_data_race, everything{});
}

TEST(JoinModelCanary, AReleaseInTwoSteps) {
    expect_found<dropped<in_two_steps<call::fetch_add>>>(rl::test_result_user_assert_failed,
                                                         everything{});
}

TEST(JoinModelCanary, ACheckThatAcquiresNothing) {
    expect_found<awaited<relaxed<call::load>>>(rl::test_result_data_race, everything{});
}

TEST(JoinModelCanary, AWithdrawalInTwoSteps) {
    expect_found<destroyed<in_two_steps<call::compare_strong>>>(rl::test_result_data_race,
                                                                everything{});
}

} // namespace
