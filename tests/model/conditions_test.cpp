// Barriers: an arrival that follows the end of a phase counts in the next one. Condition variables:
// a waiter that has released the mutex before a notification was made receives it.

#include "model/sync_parts.hpp"

#include <coil/sync/barrier.hpp>
#include <coil/sync/condition_variable.hpp>

#include <cstddef>
#include <cstdint>

namespace {

using namespace coil_model;
using quick = without_spurious_failures;

template <class Change>
struct barrier_entry : sync_waiter<Change> {
    plain<std::uint64_t> phase{0};
};

/// One thread waits through two phases; the other ends the first phase and immediately arrives in
/// the second.
template <class Change>
struct arrives_twice {
    static constexpr int threads = 2;
    using entry = barrier_entry<Change>;
    using core = coil::detail::basic_barrier<entry, sync_waiter<Change>, atomics<Change>>;

    core b{2};
    entry waits[2];
    plain<int> phases{0};

    arrives_twice() { static_cast<void>(b.arrive(1)); } // the first one waits, in phase 0

    void arrive() {
        if (b.arrive(1) == 0) {
            phases = phases + 1;
            b.complete();
        }
    }
    void wait(entry& w, std::uint64_t phase) {
        w.phase = phase;
        if (!b.is_over(phase)) {
            b.wait(w);
            w.sleep_until_over();
            w.destroy_frame();
        }
    }
    void thread(unsigned number) {
        if (number == 1) {
            arrive();
            arrive();
            return;
        }
        wait(waits[0], 0);
        require(b.phase() == 1, "the first phase is over");
        arrive();
        wait(waits[1], 1);
        require(phases == 2, "so is the second");
    }
    void after() {}
};

template <class Change>
using cv_waiters_of = coil::detail::basic_cv_waiters<sync_waiter<Change>, atomics<Change>>;

/// Stands for a mutex and a predicate, for one waiter and its notifier.
template <class Change>
struct condition {
    static constexpr unsigned lets_go = 1;
    static constexpr unsigned holds = 2;
    atomic<unsigned, Change> word{0};

    void wait(cv_waiters_of<Change>& a, sync_waiter<Change>& w) {
        a.announce();
        a.wait(w);
        if ((word.fetch_or(lets_go, std::memory_order_acq_rel) & holds) != 0) {
            w.leave(a); // the predicate holds: a real waiter would not have begun to wait
        }
        w.sleep_until_over();
        w.destroy_frame();
    }
    /// Makes the predicate hold. Returns whether the waiter had released the mutex before.
    [[nodiscard]] bool change() {
        return (word.fetch_or(holds, std::memory_order_acq_rel) & lets_go) != 0;
    }
};

/// One thread waits, another notifies at any time, and the third notifies if the waiter has
/// released the mutex: that notification must arrive.
template <class Change, bool All>
struct notified_across {
    static constexpr int threads = 3;
    cv_waiters_of<Change> a;
    condition<Change> c;
    sync_waiter<Change> w{0};

    void thread(unsigned number) {
        if (number == 0) {
            c.wait(a, w);
        } else if (number == 1) {
            a.notify_all();
        } else if (c.change()) {
            if (All) {
                a.notify_all();
            } else {
                a.notify_one();
            }
        }
    }
    void after() {}
};

/// Two threads wait for different conditions, and two notify.
template <class Change>
struct two_and_two {
    static constexpr int threads = 4;
    cv_waiters_of<Change> a;
    condition<Change> c[2];
    sync_waiter<Change> w[2]{sync_waiter<Change>(0), sync_waiter<Change>(1)};

    void thread(unsigned number) {
        if (number < 2) {
            c[number].wait(a, w[number]);
        } else if (c[number - 2].change()) {
            a.notify_all();
        }
    }
    void after() {}
};

TEST(BarrierModelG1, ArrivesInTheNextPhaseAtOnce_ThreeInterruptions) {
    expect_proof<arrives_twice<quick>>(at_most{3});
}
TEST(CvWaitersModelG1, NotifiedAcrossAnother_TwoInterruptions) {
    expect_proof<notified_across<quick, false>>(at_most{2});
    expect_proof<notified_across<quick, true>>(at_most{2});
    expect_no_failure<notified_across<quick, false>>(at_random{20'000});
}
TEST(CvWaitersModelG1, TwoAndTwo_OneInterruption) {
    expect_proof<two_and_two<quick>>(at_most{1});
    expect_no_failure<two_and_two<quick>>(at_random{20'000});
}

// Canaries.

TEST(ConditionModelCanary, ABarrierWhoseLockOrdersNothing) {
    expect_found<arrives_twice<relaxed<call::compare_weak>>>(rl::test_result_data_race, at_most{3});
}
TEST(ConditionModelCanary, CvRequestsTakenWithoutOrder) {
    expect_found<notified_across<relaxed<call::fetch_or>, true>>(rl::test_result_deadlock,
                                                                 at_most{3});
}

} // namespace
