// Work of another thread for a coroutine (exec/detail/errand.hpp): the result is visible, the
// coroutine is notified once or sees the result itself, and a destroyed awaiter is not accessed.
// Also for work in a queue from which nothing can be removed.

#include "model/parts.hpp"

#include <coil/exec/detail/errand.hpp>

namespace {

using namespace coil_model;

/// The awaiter, its context, and the steps of offload_op.
template <class Change>
struct errand_and_awaiter {
    static constexpr int threads = 2;

    mortal<coil::detail::basic_errand<atomics<Change>>> handoff;
    plain<int> result{0};
    plain<bool> there{true};
    letter post;
    int told = 0;

    // Not part of the awaiter.
    inbox<Change> box;
    bell wake_up;
    bell futex; // woken by its address

    /// The other thread.
    void do_it() {
        if (handoff->is_wanted()) {
            result = 42;
        }
        using errand_type = coil::detail::basic_errand<atomics<Change>>;
        switch (handoff->finish()) {
        case errand_type::sending:
            return;
        case errand_type::abandoned:
            futex.ring();
            return;
        default:
            break;
        }
        require(there, "a destroyed awaiter is not notified");
        if (box.push(post)) {
            wake_up.ring();
        }
    }

    // The coroutine's thread.

    void await() {
        if (handoff->wait()) {
            while (told == 0) {
                if (box.try_park()) {
                    wake_up.wait();
                    box.unpark();
                }
                deliver_inbox();
            }
        }
        require(result == 42, "the result is there");
        go();
    }
    /// Its frame is destroyed.
    void wait_until_back() {
        if (handoff->abandon()) {
            while (!handoff->is_back()) {
                futex.wait();
            }
        } else {
            while (told == 0) {
                deliver_inbox();
                rl::yield(1, RL_INFO);
            }
        }
    }
    void go() {
        there = false;
        result = 0;
        handoff.destroy();
    }

    void after() { require(told <= 1, "told once"); }

private:
    void deliver_inbox() {
        for (letter* l = box.take_all(); l != nullptr; l = l->next) {
            require(l == &post, "its post");
            ++told;
        }
    }
};

template <class Change>
struct awaited : errand_and_awaiter<Change> {
    void thread(unsigned number) {
        if (number == 0) {
            this->do_it();
        } else {
            this->await();
        }
    }
};

template <class Change>
struct destroyed : errand_and_awaiter<Change> {
    void thread(unsigned number) {
        if (number == 0) {
            this->do_it();
            return;
        }
        if (this->handoff->wait()) {
            this->wait_until_back();
        }
        this->go();
    }
};

/// It is in an executor's queue, as a separate object.
template <class Change>
struct taken_back : errand_and_awaiter<Change> {
    mortal<coil::detail::basic_claim<atomics<Change>>> call;
    plain<int> used{0}; // of the call
    plain<bool> freed{false};

    void thread(unsigned number) {
        if (number == 0) {
            if (call->take()) {
                this->do_it();
            } else {
                free();
            }
            return;
        }
        if (!this->handoff->wait()) {
            free();
        } else {
            used = 1;
            if (!call->take()) {
                this->wait_until_back();
                free();
            }
        }
        this->go();
    }

    void after() {
        require(freed, "freed");
        errand_and_awaiter<Change>::after();
    }

private:
    void free() {
        require(!freed, "freed once");
        freed = true;
        used = 0;
        call.destroy();
    }
};

TEST(ErrandModelG1, Awaited) { expect_proof<awaited<as_written>>(everything{}); }
TEST(ErrandModelG5, Destroyed) { expect_proof<destroyed<as_written>>(everything{}); }
TEST(ErrandModelG5, TakenBack) { expect_proof<taken_back<as_written>>(everything{}); }

// Canaries.

TEST(ErrandModelCanary, AnEndThatPublishesNothing) {
    expect_found<awaited<relaxed<call::exchange>>>(rl::test_result_data_race, everything{});
}

TEST(ErrandModelCanary, AWaitThatAcquiresNothing) {
    expect_found<awaited<relaxed<call::compare_strong>>>(rl::test_result_data_race, everything{});
}

TEST(ErrandModelCanary, ALookThatAcquiresNothing) {
    expect_found<destroyed<relaxed<call::load>>>(rl::test_result_data_race, everything{});
}

TEST(ErrandModelCanary, AnAbandonmentInTwoSteps) {
    expect_found<destroyed<in_two_steps<call::compare_strong>>>(rl::test_result_deadlock,
                                                                everything{});
}

TEST(ErrandModelCanary, AClaimThatOrdersNothing) {
    expect_found<taken_back<relaxed<call::compare_strong>>>(rl::test_result_data_race,
                                                            everything{});
}

} // namespace
