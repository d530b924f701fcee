// The handshakes of an await that another thread completes (exec/detail/handoff.hpp,
// context/detail/claim_once.hpp): the result is visible, the coroutine is notified once or sees the
// result itself, and a destroyed awaiter is not accessed. Also covers work in an executor's queue
// from which entries cannot be removed.

#include "model/parts.hpp"

#include <coil/context/detail/claim_once.hpp>
#include <coil/exec/detail/handoff.hpp>

namespace {

using namespace coil_model;

/// The awaiter, its context, and the steps of remote_op.
template <class Change>
struct op_and_context {
    static constexpr int threads = 2;
    using handoff_type = coil::detail::basic_handoff<atomics<Change>>;

    destroyable<handoff_type> handoff;
    plain<int> result{0};
    plain<bool> there{true};
    message own_message;
    int notified = 0;

    // Not part of the awaiter.
    inbox<Change> box;
    wake_up_fd wake_up;
    wake_up_fd futex; // stands for the futex on which the awaiter blocks

    op_and_context() { handoff->submit(); }

    /// Called by the other thread.
    void do_work() {
        if (handoff->is_wanted()) {
            result = 42;
        }
        switch (handoff->complete()) {
        case handoff_type::submitted:
            return;
        case handoff_type::abandoned:
            futex.write();
            return;
        default:
            break;
        }
        require(there, "a destroyed awaiter is not notified");
        if (box.push(own_message)) {
            wake_up.write();
        }
    }

    // The following are called by the coroutine's thread.

    void await() {
        if (handoff->suspend()) {
            while (notified == 0) {
                if (box.try_park()) {
                    wake_up.wait();
                    box.unpark();
                }
                deliver_inbox();
            }
        }
        require(result == 42, "the result is visible");
        destroy_frame();
    }
    /// remote_op::wait_until_back()
    void wait_until_back() {
        while (notified == 0) {
            deliver_inbox();
            rl::yield(1, RL_INFO);
        }
    }
    /// remote_op::block_until_complete()
    void block_until_complete() {
        if (!handoff->abandon()) {
            wait_until_back();
            return;
        }
        while (!handoff->is_complete()) {
            futex.wait();
        }
        handoff->end();
    }
    void destroy_frame() {
        there = false;
        result = 0;
        handoff.destroy();
    }

    void after() { require(notified <= 1, "notified once"); }

private:
    void deliver_inbox() {
        for (message* l = box.take_all(); l != nullptr; l = l->next) {
            require(l == &own_message, "its own message");
            ++notified;
            handoff->enqueue();
        }
    }
};

template <class Change>
struct awaited : op_and_context<Change> {
    void thread(unsigned number) {
        if (number == 0) {
            this->do_work();
        } else {
            this->await();
        }
    }
};

/// The frame is destroyed while a function runs elsewhere.
template <class Change>
struct destroyed : op_and_context<Change> {
    void thread(unsigned number) {
        if (number == 0) {
            this->do_work();
            return;
        }
        if (this->handoff->suspend()) {
            this->block_until_complete();
        }
        this->destroy_frame();
    }
};

/// The frame is destroyed while a task runs elsewhere, which may need this thread meanwhile.
template <class Change>
struct served : op_and_context<Change> {
    void thread(unsigned number) {
        if (number == 0) {
            this->do_work();
            return;
        }
        if (this->handoff->suspend()) {
            this->wait_until_back();
        }
        this->destroy_frame();
    }
};

/// The work is in an executor's queue, as a separate object.
template <class Change>
struct withdrawn : op_and_context<Change> {
    destroyable<coil::detail::basic_claim_once<atomics<Change>>> claim;
    plain<int> used{0}; // a field of the entry
    plain<bool> freed{false};

    void thread(unsigned number) {
        if (number == 0) {
            if (claim->claim()) {
                this->do_work();
            } else {
                free();
            }
            return;
        }
        if (!this->handoff->suspend()) {
            free();
        } else {
            used = 1;
            if (!claim->claim()) {
                this->block_until_complete();
                free();
            }
        }
        this->destroy_frame();
    }

    void after() {
        require(freed, "freed");
        op_and_context<Change>::after();
    }

protected:
    void free() {
        require(!freed, "freed once");
        freed = true;
        used = 0;
        claim.destroy();
    }
};

/// Before the executor begins the work, it asks the awaiter whether the work is still wanted.
template <class Change>
struct asked : withdrawn<Change> {
    void thread(unsigned number) {
        if (number == 0 && this->claim->pin()) {
            require(this->there, "a pinned entry's awaiter exists");
            this->claim->unpin();
        }
        withdrawn<Change>::thread(number);
    }
};

TEST(HandoffModelG1, Awaited) { expect_proof<awaited<as_written>>(everything{}); }
TEST(HandoffModelG5, Destroyed) { expect_proof<destroyed<as_written>>(everything{}); }
TEST(HandoffModelG5, DestroyedByAThreadThatServes) {
    expect_proof<served<as_written>>(everything{});
}
TEST(HandoffModelG5, Withdrawn) { expect_proof<withdrawn<as_written>>(everything{}); }
TEST(HandoffModelG5, AskedWhetherItIsWanted_FourInterruptions) {
    expect_proof<asked<as_written>>(at_most{4});
}

// Canaries.

TEST(HandoffModelCanary, AnEndThatPublishesNothing) {
    expect_found<awaited<relaxed<call::exchange>>>(rl::test_result_data_race, everything{});
}

TEST(HandoffModelCanary, ASuspensionThatAcquiresNothing) {
    expect_found<awaited<relaxed<call::compare_strong>>>(rl::test_result_data_race, everything{});
}

TEST(HandoffModelCanary, ACheckThatAcquiresNothing) {
    expect_found<destroyed<relaxed<call::load>>>(rl::test_result_data_race, everything{});
}

TEST(HandoffModelCanary, AnAbandonmentInTwoSteps) {
    expect_found<destroyed<in_two_steps<call::compare_strong>>>(rl::test_result_deadlock,
                                                                everything{});
}

TEST(HandoffModelCanary, AClaimThatOrdersNothing) {
    expect_found<withdrawn<relaxed<call::compare_strong>>>(rl::test_result_data_race, everything{});
}

TEST(HandoffModelCanary, AnUnpinThatPublishesNothing) {
    expect_found<asked<relaxed<call::store>>>(rl::test_result_data_race, at_most{4});
}

} // namespace
