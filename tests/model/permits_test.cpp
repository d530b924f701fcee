// Permits (mutexes, semaphores): a waiter is notified once, one that leaves is no longer accessed,
// and a permit is neither lost nor given twice.

#include "model/sync_parts.hpp"

namespace {

using namespace coil_model;
using quick = without_spurious_failures;

template <class Change, class Steps = patient>
struct shared {
    using waiter = sync_waiter<Change, Steps>;
    using permits = coil::detail::basic_permits<waiter, atomics<Change>>;

    permits p{0};
    plain<int> guarded{0};

    void use() { guarded = guarded + 1; }
    void wait(waiter& w) {
        if (p.acquire()) {
            use();
            p.release();
            return;
        }
        p.wait(w);
        w.sleep_until_over();
        use();
        p.release();
        w.destroy_frame();
    }
    void wait_and_leave(waiter& w, bool destroyed) {
        if (p.acquire()) {
            use();
            p.release();
            return;
        }
        p.wait(w);
        w.leave(p);
        if (destroyed) {
            w.deliver_until_over();
        } else {
            w.sleep_until_over();
        }
        if (!w.cancelled) {
            use();
            p.release();
        }
        w.destroy_frame();
    }
    void nothing_is_lost() {
        require(p.try_acquire(), "a permit was lost");
        require(!p.try_acquire(), "a permit was duplicated");
    }
};

/// One thread waits while another releases.
template <class Change>
struct handed_over : shared<Change> {
    static constexpr int threads = 2;
    typename shared<Change>::waiter w{0};

    void thread(unsigned number) {
        if (number == 0) {
            this->wait(w);
        } else {
            this->use();
            this->p.release();
        }
    }
    void after() {
        require(this->guarded == 2, "both had it");
        this->nothing_is_lost();
    }
};

/// A waiter is cancelled, or destroyed, while another thread releases.
template <class Change, bool Destroyed, class Steps = patient>
struct gives_up : shared<Change, Steps> {
    static constexpr int threads = 2;
    typename shared<Change, Steps>::waiter w{0};

    void thread(unsigned number) {
        if (number == 0) {
            this->wait_and_leave(w, Destroyed);
        } else {
            this->use();
            this->p.release();
        }
    }
    void after() { this->nothing_is_lost(); }
};

/// One thread waits, one gives up, one releases.
template <class Change, bool Destroyed>
struct one_of_two_gives_up : shared<Change> {
    static constexpr int threads = 3;
    typename shared<Change>::waiter patient_one{0};
    typename shared<Change>::waiter other{1};

    void thread(unsigned number) {
        if (number == 0) {
            this->wait(patient_one);
        } else if (number == 1) {
            this->wait_and_leave(other, Destroyed);
        } else {
            this->p.release();
        }
    }
    void after() { this->nothing_is_lost(); }
};

/// Two threads wait, one releases one permit, which is then passed on.
template <class Change>
struct from_hand_to_hand : shared<Change> {
    static constexpr int threads = 3;
    typename shared<Change>::waiter one{0};
    typename shared<Change>::waiter two{1};

    void thread(unsigned number) {
        if (number == 0) {
            this->wait(one);
        } else if (number == 1) {
            this->wait(two);
        } else {
            this->p.release();
        }
    }
    void after() {
        require(this->guarded == 2, "both had it");
        this->nothing_is_lost();
    }
};

/// The thread that unlocks a mutex last may destroy it, while unlock() of the previous owner has
/// not returned yet.
template <class Change>
struct destroyed_by_the_last {
    static constexpr int threads = 2;
    using waiter = sync_waiter<Change>;
    using permits = coil::detail::basic_permits<waiter, atomics<Change>>;

    struct held : permits {
        held() : permits(0) {}
    };
    destroyable<held> p;
    waiter w{0};

    void thread(unsigned number) {
        if (number == 0) {
            if (!p->acquire()) {
                p->wait(w);
                w.sleep_until_over();
            }
            p->release();
            p.destroy();
        } else {
            p->release();
        }
    }
    void after() {}
};

/// Two coroutines wait on one thread, which destroys the semaphore as soon as both have a permit;
/// two threads release one each.
template <class Change>
struct destroyed_by_owner_of_both {
    static constexpr int threads = 3;
    using waiter = sync_waiter<Change>;
    using permits = coil::detail::basic_permits<waiter, atomics<Change>>;

    struct empty : permits {
        empty() : permits(0) {}
    };
    destroyable<empty> p;
    waiter one{0};
    waiter two{0};

    void thread(unsigned number) {
        if (number != 0) {
            p->release();
            return;
        }
        const bool first_waits = !p->acquire();
        if (first_waits) {
            p->wait(one);
        }
        if (!p->acquire()) {
            p->wait(two);
            two.sleep_until_over();
        }
        if (first_waits) {
            one.sleep_until_over();
        }
        p.destroy();
    }
    void after() {}
};

// The bounds on preemptions keep each model below two seconds. Where a bound is low, a random
// sample without a bound follows.

TEST(PermitsModelG1, HandedOver_FiveInterruptions) {
    expect_proof<handed_over<as_written>>(at_most{5});
}
TEST(PermitsModelG1, CancelledWhileItIsHandedOver_ThreeInterruptions) {
    expect_proof<gives_up<as_written, false>>(at_most{3});
    expect_no_failure<gives_up<quick, false>>(at_random{10'000});
}
TEST(PermitsModelG5, DestroyedWhileItIsHandedOver_ThreeInterruptions) {
    expect_proof<gives_up<as_written, true>>(at_most{3});
    expect_no_failure<gives_up<quick, true>>(at_random{10'000});
}
TEST(PermitsModelG1, OneOfTwoIsCancelled_TwoInterruptions) {
    expect_proof<one_of_two_gives_up<quick, false>>(at_most{2});
    expect_no_failure<one_of_two_gives_up<quick, false>>(at_random{20'000});
}
TEST(PermitsModelG5, OneOfTwoIsDestroyed_TwoInterruptions) {
    expect_proof<one_of_two_gives_up<quick, true>>(at_most{2});
    expect_no_failure<one_of_two_gives_up<quick, true>>(at_random{20'000});
}
TEST(PermitsModelG1, PassedOnByTheFirstWaiter_TwoInterruptions) {
    expect_proof<from_hand_to_hand<quick>>(at_most{2});
    expect_no_failure<from_hand_to_hand<quick>>(at_random{20'000});
}
TEST(PermitsModelG5, DestroyedByTheLast_FiveInterruptions) {
    expect_proof<destroyed_by_the_last<as_written>>(at_most{5});
}
TEST(PermitsModelG5, DestroyedByTheOwnerOfBothPermits_ThreeInterruptions) {
    expect_proof<destroyed_by_owner_of_both<quick>>(at_most{3});
    expect_no_failure<destroyed_by_owner_of_both<quick>>(at_random{20'000});
}

// Canaries.

TEST(PermitsModelCanary, AWaiterThatLeavesBeforeItsCancelIsAcknowledged) {
    expect_found<gives_up<as_written, true, hasty_leaver>>(rl::test_result_data_race, at_most{3});
}
TEST(PermitsModelCanary, ACombiningLockThatOrdersNothing) {
    expect_found<gives_up<relaxed<call::compare_weak>, true>>(rl::test_result_data_race,
                                                              at_most{3});
}
TEST(PermitsModelCanary, PendingRequestsTakenWithoutOrder) {
    expect_found<from_hand_to_hand<relaxed<call::fetch_or>>>(rl::test_result_data_race, at_most{2});
}
TEST(PermitsModelCanary, APermitThatIsReleasedInTwoSteps) {
    expect_found<gives_up<in_two_steps<call::fetch_add>, false>>(rl::test_result_user_assert_failed,
                                                                 at_most{3});
}

} // namespace
