// The inbox with its parking: nothing is lost or reordered, no wake-up is lost, and each sleep is
// ended by one wake-up.

#include "model/parts.hpp"

namespace {

using namespace coil_model;

/// Some producers, and an owner that sleeps when its inbox is empty. `Polls`: it polls before it
/// sleeps, as the loop does.
template <int Producers, int Each, bool Polls, class Change>
struct mailbox {
    static constexpr int threads = 1 + Producers;

    inbox<Change> box;
    message messages[Producers][Each];
    wake_up_fd wake_up;
    int received[Producers] = {};

    void thread(unsigned number) {
        if (number == 0) {
            own();
        } else {
            produce(static_cast<int>(number) - 1);
        }
    }

    void produce(int sender) {
        for (int i = 0; i < Each; ++i) {
            message& l = messages[sender][i];
            l.sender = sender;
            l.number = i;
            if (box.push(l)) {
                wake_up.write();
            }
        }
    }

    void own() {
        int left = Producers * Each;
        while (left > 0) {
            if (!Polls || box.empty()) {
                if (box.try_park()) {
                    require(wake_up.wait() == 1, "one producer ends a sleep");
                    require(!box.unpark(), "a producer has ended it");
                } else if (Polls) {
                    continue;
                }
            }
            for (message* l = box.take_all(); l != nullptr; l = l->next) {
                require(l->number == received[l->sender]++,
                        "messages of one producer arrive in order");
                --left;
            }
        }
        require(box.take_all() == nullptr, "nothing arrives twice");
    }

    void after() {
        for (const int count : received) {
            require(count == Each, "everything has arrived");
        }
    }
};

template <class Change>
using one_producer = mailbox<1, 2, true, Change>;
template <class Change>
using two_producers = mailbox<2, 1, false, Change>;

/// The owner's sleep ends by itself (a completion, a timer) while a producer may be ending it.
template <class Change>
struct short_sleep {
    static constexpr int threads = 2;

    inbox<Change> box;
    message sent;
    wake_up_fd wake_up;
    int wake_ups = 0;

    void thread(unsigned number) {
        if (number == 0) {
            int due = 0;
            if (box.try_park()) {
                due += box.unpark() ? 0 : 1;
            }
            while (box.empty()) {
                if (box.try_park()) {
                    wake_ups += static_cast<int>(wake_up.wait());
                    due += box.unpark() ? 0 : 1;
                }
            }
            require(box.take_all() == &sent, "the message that was sent");
            while (wake_ups < due) {
                wake_ups += static_cast<int>(wake_up.wait());
            }
            require(wake_ups == due,
                    "a wake-up for each sleep that a producer ended, and for no other");
        } else if (box.push(sent)) {
            wake_up.write();
        }
    }
    void after() {}
};

TEST(InboxModelG9, OneProducerTwoMessages) { expect_proof<one_producer<as_written>>(everything{}); }

TEST(InboxModelG9, TwoProducers) {
    expect_proof<two_producers<without_spurious_failures>>(everything{});
}

// The full search takes 18 million interleavings.
TEST(InboxModelG9, TwoProducersAndAnOwnerThatPolls_FourInterruptions) {
    expect_proof<mailbox<2, 1, true, as_written>>(at_most(4));
}

TEST(InboxModelG9, TwoProducersTwoMessagesEach_ThreeInterruptions) {
    expect_proof<mailbox<2, 2, true, without_spurious_failures>>(at_most(3));
}

TEST(InboxModelG8, ASleepThatEndsByItselfOwesNoWakeUp) {
    expect_proof<short_sleep<as_written>>(everything{});
}

// Canaries.

TEST(InboxModelCanary, APushThatPublishesNothing) {
    expect_found<one_producer<relaxed<call::compare_weak>>>(rl::test_result_data_race,
                                                            everything{});
}

TEST(InboxModelCanary, ATakeThatAcquiresNothing) {
    expect_found<one_producer<relaxed<call::exchange>>>(rl::test_result_data_race, everything{});
}

TEST(InboxModelCanary, ParkingInTwoStepsLosesAWakeUp) {
    expect_found<one_producer<in_two_steps<call::compare_strong>>>(rl::test_result_deadlock,
                                                                   everything{});
}

} // namespace
