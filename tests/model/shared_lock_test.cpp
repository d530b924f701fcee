// Readers and writers, notifications, and phases of a barrier.

#include "model/sync_parts.hpp"

#include <coil/sync/barrier.hpp>
#include <coil/sync/condition_variable.hpp>
#include <coil/sync/detail/shared_lock.hpp>

namespace {

using namespace coil_model;
using quick = without_spurious_failures;

template <class Change>
struct lock_entry : sync_waiter<Change> {
    lock_entry(unsigned owner, bool wants_shared)
        : sync_waiter<Change>(owner), shared(wants_shared) {}
    const bool shared;
};

/// A writer writes, two readers read; one of them may give up.
template <class Change, bool GivesUp>
struct one_writer {
    static constexpr int threads = 3;

    coil::detail::basic_shared_lock<lock_entry<Change>, sync_waiter<Change>, atomics<Change>> lock;
    lock_entry<Change> writer{0, false};
    lock_entry<Change> readers[2]{{1, true}, {2, true}};
    plain<int> written{0};

    void thread(unsigned number) {
        if (number == 0) {
            if (!lock.try_lock()) {
                lock.wait(writer);
                writer.sleep_until_over();
                writer.destroy_frame();
            }
            written = written + 1;
            lock.unlock();
            return;
        }
        lock_entry<Change>& me = readers[number - 1];
        if (!lock.try_lock_shared()) {
            lock.wait(me);
            if (GivesUp && number == 2) {
                me.leave(lock);
                me.deliver_until_over();
            } else {
                me.sleep_until_over();
            }
            me.destroy_frame();
            if (me.cancelled) {
                return;
            }
        }
        require(written == 0 || written == 1, "before or after");
        lock.unlock_shared();
    }
    void after() { require(lock.is_free() && lock.try_lock(), "all locks were released"); }
};

/// Two writers, one of which is destroyed while it waits or after the lock was handed to it.
template <class Change>
struct two_writers {
    static constexpr int threads = 2;

    coil::detail::basic_shared_lock<lock_entry<Change>, sync_waiter<Change>, atomics<Change>> lock;
    lock_entry<Change> writers[2]{{0, false}, {1, false}};
    plain<int> written{0};

    void thread(unsigned number) {
        lock_entry<Change>& me = writers[number];
        if (!lock.try_lock()) {
            lock.wait(me);
            if (number == 0) {
                me.leave(lock);
                me.deliver_until_over();
            } else {
                me.sleep_until_over();
            }
            me.destroy_frame();
            if (me.cancelled) {
                return;
            }
        }
        written = written + 1;
        lock.unlock();
    }
    void after() { require(lock.is_free() && lock.try_lock(), "both were released"); }
};

/// One of two waiters is notified; one gives up. A notified waiter that leaves passes the
/// notification on.
template <class Change>
struct notified {
    static constexpr int threads = 2;

    coil::detail::basic_cv_waiters<sync_waiter<Change>, atomics<Change>> cv_waiters;
    sync_waiter<Change> patient_one{0};
    sync_waiter<Change> other{0};
    wake_up_fd both_wait;

    void thread(unsigned number) {
        if (number == 0) {
            cv_waiters.announce();
            cv_waiters.wait(other);
            cv_waiters.announce();
            cv_waiters.wait(patient_one);
            both_wait.write();
            other.leave(cv_waiters);
            other.deliver_until_over();
            if (!other.cancelled) {
                cv_waiters.notify_one();
            }
            other.destroy_frame();
            patient_one.sleep_until_over();
            patient_one.destroy_frame();
        } else {
            both_wait.wait();
            cv_waiters.notify_one();
        }
    }
    void after() {}
};

template <class Change>
struct barrier_entry : sync_waiter<Change> {
    using sync_waiter<Change>::sync_waiter;
    std::uint64_t phase = 0;
};

/// Two threads, two phases: each sees what the other did in the phase before.
template <class Change, int Phases>
struct in_step {
    static constexpr int threads = 2;

    coil::detail::basic_barrier<barrier_entry<Change>, sync_waiter<Change>, atomics<Change>> it{2};
    struct first : barrier_entry<Change> {
        first() : barrier_entry<Change>(0) {}
    };
    struct second : barrier_entry<Change> {
        second() : barrier_entry<Change>(1) {}
    };
    first of_first[Phases];
    second of_second[Phases];
    plain<int> done[2][Phases];

    void thread(unsigned number) {
        for (int i = 0; i < Phases; ++i) {
            barrier_entry<Change>& me =
                number == 0 ? static_cast<barrier_entry<Change>&>(of_first[i]) : of_second[i];
            done[number][i] = 1;
            me.phase = it.phase();
            if (it.arrive(1) == 0) {
                it.complete();
            }
            if (!it.is_over(me.phase)) {
                it.wait(me);
                me.sleep_until_over();
                me.destroy_frame();
            }
            require(done[1 - number][i] == 1, "the other has arrived");
        }
    }
    void after() {}
};

// The bounds on preemptions keep each model below two seconds. Where a bound is low, a random
// sample without a bound follows.

TEST(SharedLockModelG1, OneWriterTwoReaders_TwoInterruptions) {
    expect_proof<one_writer<quick, false>>(at_most{2});
}
TEST(SharedLockModelG5, AReaderIsDestroyed_TwoInterruptions) {
    expect_proof<one_writer<quick, true>>(at_most{2});
}
TEST(SharedLockModelG5, AWriterIsDestroyed_FourInterruptions) {
    expect_proof<two_writers<quick>>(at_most{4});
}
TEST(CvWaitersModelG1, ANotificationIsPassedOn_FourInterruptions) {
    expect_proof<notified<quick>>(at_most{4});
}
TEST(BarrierModelG1, TwoInStep_TwoInterruptions) {
    expect_proof<in_step<quick, 2>>(at_most{2});
    expect_no_failure<in_step<quick, 2>>(at_random{10'000});
}

// Canaries.

TEST(SharedLockModelCanary, AnUnlockInTwoSteps) {
    expect_found<two_writers<in_two_steps<call::fetch_add>>>(rl::test_result_deadlock, at_most{4});
}
TEST(CvWaitersModelCanary, ANotificationThatOrdersNothing) {
    expect_found<notified<relaxed<call::compare_weak>>>(rl::test_result_data_race, at_most{4});
}
TEST(BarrierModelCanary, ArrivingWithoutOrder) {
    expect_found<in_step<relaxed<call::fetch_add>, 1>>(rl::test_result_data_race, at_most{2});
}

} // namespace
