// Stop sources: a callback runs at most once, and not after it was unregistered.

#include "model/parts.hpp"

#include <coil/core/detail/stop_state.hpp>

namespace {

using namespace coil_model;

struct callback {
    plain<callback*> next{nullptr};
    plain<plain<callback*>*> link_{nullptr};
    void (*on_stop)(callback&) = nullptr;

    plain<int> calls{0};
    plain<bool> there{true}; // its memory is in use

    void leave() { there = false; }
};

template <class Change>
struct source {
    coil::detail::basic_stop_state<callback, atomics<Change>> state;

    /// Like stop_callback_base::attach(). Returns false if a stop had been requested already; the
    /// callback has then been called.
    bool attach(callback& c) {
        c.on_stop = [](callback& self) {
            require(self.there, "a destroyed callback is not called");
            self.calls = self.calls + 1;
        };
        if (state.insert(c)) {
            return true;
        }
        c.on_stop(c);
        return false;
    }

    /// Registers, unregisters, and is destroyed.
    void live(callback& c) {
        if (attach(c)) {
            state.erase(c);
        } else {
            require(c.calls == 1, "called at once");
        }
        require(c.calls <= 1, "called once");
        c.leave();
    }
};

template <class Change>
struct one_callback : source<Change> {
    static constexpr int threads = 2;
    callback c;

    void thread(unsigned number) {
        if (number == 0) {
            this->live(c);
        } else {
            require(this->state.request(), "the first request");
        }
    }
    void after() { require(this->state.is_requested(), "requested"); }
};

/// Registered before anything happens; unregisters itself on its own thread.
template <class Change>
struct unregistered : source<Change> {
    static constexpr int threads = 2;
    callback c;

    unregistered() { this->attach(c); }
    void thread(unsigned number) {
        if (number == 0) {
            this->state.erase(c);
            c.leave();
        } else {
            this->state.request();
        }
    }
    void after() {}
};

/// Neighbours in the list: one leaves, the other stays.
template <class Change>
struct neighbours : source<Change> {
    static constexpr int threads = 2;
    callback stays;
    callback leaves;

    neighbours() {
        this->attach(stays);
        this->attach(leaves);
    }
    void thread(unsigned number) {
        if (number == 0) {
            this->state.erase(leaves);
            leaves.leave();
        } else {
            this->state.request();
        }
    }
    void after() { require(stays.calls == 1, "the one that stayed was called"); }
};

template <class Change>
struct two_callbacks : source<Change> {
    static constexpr int threads = 3;
    callback callbacks[2];

    void thread(unsigned number) {
        if (number == 0) {
            this->state.request();
        } else {
            this->live(callbacks[number - 1]);
        }
    }
    void after() {}
};

template <class Change>
struct two_requests : source<Change> {
    static constexpr int threads = 3;
    callback c;
    int first = 0;

    two_requests() { this->attach(c); }
    void thread(unsigned number) {
        if (number == 0) {
            this->state.erase(c);
            c.leave();
        } else if (this->state.request()) {
            ++first;
        }
    }
    void after() { require(first == 1, "one request is the first"); }
};

// Full searches take too long: the lock alone causes some twenty steps per thread.

TEST(StopTokenModelG9, OneCallback_FiveInterruptions) {
    expect_proof<one_callback<as_written>>(at_most{5});
}
TEST(StopTokenModelG9, UnregisteredWhileItIsCalled_FiveInterruptions) {
    expect_proof<unregistered<as_written>>(at_most{5});
}
TEST(StopTokenModelG9, Neighbours_FourInterruptions) {
    expect_proof<neighbours<without_spurious_failures>>(at_most{4});
}
TEST(StopTokenModelG9, TwoCallbacks_ThreeInterruptions) {
    expect_proof<two_callbacks<without_spurious_failures>>(at_most{3});
}
TEST(StopTokenModelG9, TwoRequests_ThreeInterruptions) {
    expect_proof<two_requests<without_spurious_failures>>(at_most{3});
}

// Canaries.

TEST(StopTokenModelCanary, ALockThatAcquiresNothing) {
    expect_found<unregistered<relaxed<call::compare_weak>>>(rl::test_result_data_race,
                                                            everything{});
}

TEST(StopTokenModelCanary, AnUnlockThatPublishesNothing) {
    expect_found<unregistered<relaxed<call::store>>>(rl::test_result_data_race, everything{});
}

TEST(StopTokenModelCanary, AWaitForTheCallbackThatAcquiresNothing) {
    expect_found<unregistered<relaxed<call::load>>>(rl::test_result_data_race, everything{});
}

} // namespace
