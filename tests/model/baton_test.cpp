// Batons (events, latches) and wait groups: all waiters pass, and one that has passed may destroy
// the baton.

#include "model/sync_parts.hpp"

#include <coil/sync/wait_group.hpp>

namespace {

using namespace coil_model;
using quick = without_spurious_failures;

struct checks_whole_word {
    static constexpr bool looks_at_turn = true;
};
struct checks_open_bit {
    static constexpr bool looks_at_turn = false;
};

template <class Change>
struct closed_gate : coil::detail::basic_baton<sync_waiter<Change>, atomics<Change>> {
    closed_gate() : coil::detail::basic_baton<sync_waiter<Change>, atomics<Change>>(false) {}
};

/// A thread waits for something that another thread produces, and destroys the baton.
template <class Change, class Steps = checks_whole_word>
struct opened {
    static constexpr int threads = 2;

    destroyable<closed_gate<Change>> baton;
    sync_waiter<Change> w{0};
    plain<int> made{0};

    void thread(unsigned number) {
        if (number == 0) {
            const bool passes = Steps::looks_at_turn ? baton->passes() : baton->is_open();
            if (!passes) {
                baton->wait(w);
                w.sleep_until_over();
            }
            require(made == 1, "it was made");
            baton.destroy();
            w.destroy_frame();
        } else {
            made = 1;
            baton->open();
        }
    }
    void after() {}
};

/// A waiter gives up, or is destroyed, while another thread opens the baton.
template <class Change, bool Destroyed>
struct given_up {
    static constexpr int threads = 2;

    closed_gate<Change> baton;
    sync_waiter<Change> w{0};
    plain<int> made{0};

    void thread(unsigned number) {
        if (number == 0) {
            baton.wait(w);
            w.leave(baton);
            if (Destroyed) {
                w.deliver_until_over();
            } else {
                w.sleep_until_over();
            }
            require(w.cancelled || made == 1, "it was made");
            w.destroy_frame();
        } else {
            made = 1;
            baton.open();
        }
    }
    void after() { require(baton.passes(), "open"); }
};

/// Two coroutines wait on two contexts; one of them gives up.
template <class Change>
struct opened_for_two {
    static constexpr int threads = 3;

    closed_gate<Change> baton;
    sync_waiter<Change> one{0};
    sync_waiter<Change> two{1};

    void thread(unsigned number) {
        if (number == 0) {
            baton.wait(one);
            one.sleep_until_over();
            one.destroy_frame();
        } else if (number == 1) {
            baton.wait(two);
            two.leave(baton);
            two.deliver_until_over();
            two.destroy_frame();
        } else {
            baton.open();
        }
    }
    void after() { require(baton.passes(), "open"); }
};

/// Coroutines that wait when open() is called pass, although the baton is closed immediately
/// afterwards; later ones do not.
template <class Change>
struct opened_and_closed {
    static constexpr int threads = 2;

    closed_gate<Change> baton;
    sync_waiter<Change> waits_before{0};
    sync_waiter<Change> comes{1};
    wake_up_fd waits;

    void thread(unsigned number) {
        if (number == 0) {
            baton.wait(waits_before);
            waits.write();
            waits_before.sleep_until_over();
            waits_before.destroy_frame();
        } else {
            waits.wait();
            baton.open();
            baton.close();
            require(!baton.passes(), "closed");
            baton.wait(comes);
            require(!comes.ended(), "waits until it is opened again");
            comes.leave(baton);
            comes.deliver_until_over();
            require(comes.cancelled, "it was not opened");
        }
    }
    void after() { require(!baton.is_open(), "closed"); }
};

template <class Change>
using group = coil::detail::basic_group<sync_waiter<Change>, atomics<Change>>;

template <class Change>
struct group_of_two {
    static constexpr int threads = 3;

    destroyable<group<Change>> it;
    sync_waiter<Change> w{0};
    plain<int> made[2];

    group_of_two() { it->add(2); }
    void thread(unsigned number) {
        if (number == 0) {
            if (!it->passes()) {
                it->wait(w);
                w.sleep_until_over();
            }
            require(made[0] == 1 && made[1] == 1, "all is done");
            it.destroy();
            w.destroy_frame();
        } else {
            made[number - 1] = 1;
            require(it->done(), "the count was not zero");
        }
    }
    void after() {}
};

/// add() races with the done() that may end the group: a wait() after add() waits for what was
/// added.
template <class Change>
struct group_used_again {
    static constexpr int threads = 2;

    group<Change> it;
    sync_waiter<Change> w{0};

    group_used_again() { it.add(1); }
    void thread(unsigned number) {
        if (number == 0) {
            it.add(1);
            require(!it.passes(), "one is left");
            it.wait(w);
            w.leave(it);
            w.deliver_until_over();
            require(w.cancelled, "one is left");
            require(it.done(), "it is done now");
        } else {
            require(it.done(), "the count was not zero");
        }
    }
    void after() { require(it.passes(), "nothing is left"); }
};

// The bounds on preemptions keep each model below two seconds. Where a bound is low, a random
// sample without a bound follows.

TEST(BatonModelG1, OpenedAndDestroyed_FiveInterruptions) {
    expect_proof<opened<as_written>>(at_most{5});
}
TEST(BatonModelG1, CancelledWhileItIsOpened_FourInterruptions) {
    expect_proof<given_up<as_written, false>>(at_most{4});
}
TEST(BatonModelG5, DestroyedWhileItIsOpened_ThreeInterruptions) {
    expect_proof<given_up<as_written, true>>(at_most{3});
    expect_no_failure<given_up<quick, true>>(at_random{10'000});
}
TEST(BatonModelG1, TwoWaitAndOneIsCancelled_TwoInterruptions) {
    expect_proof<opened_for_two<quick>>(at_most{2});
    expect_no_failure<opened_for_two<quick>>(at_random{20'000});
}
TEST(BatonModelG1, OpenedAndClosedAtOnce_FourInterruptions) {
    expect_proof<opened_and_closed<quick>>(at_most{4});
}
TEST(GroupModelG1, TheLastOfTwoWakesAndTheGroupIsDestroyed_ThreeInterruptions) {
    expect_proof<group_of_two<quick>>(at_most{3});
}
TEST(GroupModelG1, UsedAgainWhileItEnds_FourInterruptions) {
    expect_proof<group_used_again<quick>>(at_most{4});
}

// Canaries.

TEST(BatonModelCanary, PassingWhileItIsBeingOpened) {
    expect_found<opened<as_written, checks_open_bit>>(rl::test_result_access_to_freed_memory,
                                                      at_most{4});
}
TEST(BatonModelCanary, AnOpenThatOrdersNothing) {
    expect_found<opened<relaxed<call::compare_weak>>>(rl::test_result_data_race, at_most{4});
}
TEST(BatonModelCanary, PendingRequestsTakenWithoutOrder) {
    expect_found<opened_for_two<relaxed<call::fetch_or>>>(rl::test_result_data_race, at_most{2});
}

} // namespace
