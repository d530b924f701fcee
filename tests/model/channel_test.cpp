// Channels: every element is received once; no waiter misses an element; a receiver that gives up
// loses nothing; closing ends all waits and loses nothing; another thread ends the bias of a
// channel to its first user at any time.

#include "model/pool_parts.hpp"
#include "model/sync_parts.hpp"

#include <coil/sync/detail/channel_core.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace {

using namespace coil_model;

/// An element that two threads must not access concurrently.
struct payload {
    explicit payload(int n) : number(n) {}
    payload(payload&& other) noexcept : number(other.number.get()) {}
    payload& operator=(payload&& other) noexcept {
        number = other.number.get();
        return *this;
    }
    plain<int> number;
};

template <class Change>
struct entry : sync_waiter<Change> {
    entry(unsigned owner, bool is_sender) : sync_waiter<Change>(owner), sends(is_sender) {}

    /// Relacy replaces operator new, and tracks only memory that this one has allocated.
    using element_type = coil::detail::channel_element<payload, coil::detail::heap_allocated>;

    std::optional<payload> value;
    std::unique_ptr<element_type> element;
    const bool sends;
    bool closed = false;
};

template <class Change>
using core = coil::detail::basic_channel<payload, entry<Change>, sync_waiter<Change>,
                                         channel_atomics<Change>>;

/// Unbounded capacity.
constexpr std::size_t unbounded = ~std::size_t{0};

/// One attempt to lock is representative of many.
constexpr int attempts = 1;

template <class Change, std::size_t Room>
struct shared {
    fence_cells fences;
    core<Change> ch{Room == unbounded ? 0 : Room, Room == unbounded};

    shared() {
        if (!channel_atomics<Change>::can_bias()) {
            ch.share();
        }
    }

    void put_into(entry<Change>& me, int number) {
        if (Room == unbounded) {
            me.element = std::make_unique<typename entry<Change>::element_type>(payload(number));
        } else {
            me.value.emplace(number);
        }
    }
    /// The steps of an await before it waits.
    bool send_at_once(entry<Change>& me) { return ch.push_now(me) || ch.attempt(me, attempts); }
    bool receive_at_once(entry<Change>& me) {
        return ch.try_pop(me.value) || ch.attempt(me, attempts);
    }
    /// Returns false if the channel is closed.
    bool send(entry<Change>& me, int number) {
        put_into(me, number);
        if (!send_at_once(me)) {
            ch.wait(me);
            me.sleep_until_over();
            me.destroy_frame();
        }
        return !me.closed;
    }
    /// Returns 0 if the channel is closed.
    int receive(entry<Change>& me) {
        if (!receive_at_once(me)) {
            ch.wait(me);
            me.sleep_until_over();
            me.destroy_frame();
        }
        require(me.value.has_value() != me.closed, "an element, or the end");
        return me.value ? me.value->number.get() : 0;
    }
    /// Gives up a receive that has to wait; an element that it was given goes back to the channel.
    /// Returns the number of an element that was received immediately, else 0.
    int receive_and_give_up(entry<Change>& me, bool destroyed) {
        if (!receive_at_once(me)) {
            me.element = std::make_unique<typename entry<Change>::element_type>();
            ch.wait(me);
            me.leave(ch);
            if (destroyed) {
                me.deliver_until_over();
            } else {
                me.sleep_until_over();
            }
            me.destroy_frame();
            if (me.value) {
                me.element->value.emplace(std::move(*me.value));
                ch.give_back(std::move(me.element));
            }
            return 0;
        }
        return me.value->number;
    }
    int try_receive() {
        entry<Change> e(rl::thread_index(), false);
        bool done = ch.try_pop(e.value);
        if (!done) {
            ch.attempt_locked(e, done);
        }
        return e.value ? e.value->number.get() : 0;
    }
};

/// Several elements through a channel with less capacity.
template <class Change, std::size_t Room, int Count>
struct one_to_one : shared<Change, Room> {
    static constexpr int threads = 2;

    struct sender : entry<Change> {
        sender() : entry<Change>(0, true) {}
    };
    struct receiver : entry<Change> {
        receiver() : entry<Change>(1, false) {}
    };
    sender senders[Count];
    receiver receivers[Count];

    void thread(unsigned number) {
        for (int i = 0; i < Count; ++i) {
            if (number == 0) {
                require(this->send(senders[i], i + 1), "it is not closed");
            } else {
                require(this->receive(receivers[i]) == i + 1, "in order");
            }
        }
    }
    void after() {}
};

/// Several coroutines of one context send in turn, and wait afterwards.
template <class Change, std::size_t Room, int Count>
struct sends_of_one_context : shared<Change, Room> {
    static constexpr int threads = 2;

    using sender = typename one_to_one<Change, Room, Count>::sender;
    using receiver = typename one_to_one<Change, Room, Count>::receiver;
    sender senders[Count];
    receiver receivers[Count];

    void thread(unsigned number) {
        if (number == 1) {
            for (int i = 0; i < Count; ++i) {
                require(this->receive(receivers[i]) == i + 1, "in order");
            }
            return;
        }
        bool waits[Count] = {};
        for (int i = 0; i < Count; ++i) {
            this->put_into(senders[i], i + 1);
            waits[i] = !this->send_at_once(senders[i]);
            if (waits[i]) {
                this->ch.wait(senders[i]);
            }
        }
        for (int i = 0; i < Count; ++i) {
            if (waits[i]) {
                senders[i].sleep_until_over();
                senders[i].destroy_frame();
            }
        }
    }
    void after() {}
};

/// Each send and receive is followed by a pass over the ring, as in a batch.
template <class Change, std::size_t Room, int Count>
struct in_batches : shared<Change, Room> {
    static constexpr int threads = 2;

    typename one_to_one<Change, Room, Count>::sender senders[Count];
    typename one_to_one<Change, Room, Count>::receiver receivers[Count];

    void thread(unsigned number) {
        std::vector<payload> batch;
        for (int i = 0; i < Count; ++i) {
            batch.emplace_back(number == 0 ? i + 1 : 0);
        }
        const std::span<payload> all(batch);
        for (std::size_t i = 0; i < all.size();) {
            const int expected = static_cast<int>(i) + 1;
            if (number == 0) {
                require(this->send(senders[i], expected), "it is not closed");
                ++i;
                i += this->ch.push_many(all.subspan(i));
            } else {
                require(this->receive(receivers[i]) == expected, "in order");
                ++i;
                const std::size_t more = this->ch.pop_many(all.subspan(i));
                for (std::size_t k = 0; k < more; ++k, ++i) {
                    require(all[i].number.get() == static_cast<int>(i) + 1, "in order");
                }
            }
        }
    }
    void after() {}
};

/// Closed while a batch is sent: what was sent is received.
template <class Change>
struct batch_closed_across : shared<Change, 2> {
    static constexpr int threads = 3;

    entry<Change> sender{0, true};
    entry<Change> receivers[3]{{1, false}, {1, false}, {1, false}};
    int sent = 0;
    int received = 0;

    void thread(unsigned number) {
        if (number == 0) {
            payload last(2);
            if (this->send(sender, 1)) {
                sent = 1 + static_cast<int>(this->ch.push_many({&last, 1}));
            }
        } else if (number == 1) {
            for (auto& r : receivers) {
                if (this->receive(r) == 0) {
                    return;
                }
                payload more(0);
                received += 1 + static_cast<int>(this->ch.pop_many({&more, 1}));
            }
        } else {
            this->ch.close();
        }
    }
    void after() { require(sent == received, "what was sent was received"); }
};

/// The receiver gives up while the element arrives.
template <class Change, std::size_t Room, bool Destroyed>
struct gives_up : shared<Change, Room> {
    static constexpr int threads = 2;

    entry<Change> sender{0, true};
    entry<Change> receiver{1, false};
    int got = 0;

    void thread(unsigned number) {
        if (number == 0) {
            if (Room == 0) {
                bool done = false;
                sender.value.emplace(1);
                this->ch.attempt_locked(sender, done);
                got = done ? 0 : 1; // there was no receiver
            } else {
                require(this->send(sender, 1), "it is not closed");
            }
        } else {
            got += this->receive_and_give_up(receiver, Destroyed);
        }
    }
    void after() {
        require(got == 1 || this->try_receive() == 1, "the element is there");
        require(this->try_receive() == 0, "but only once");
    }
};

/// One receiver gives up, another one waits for the only element.
template <class Change>
struct one_of_two_gives_up : shared<Change, 1> {
    static constexpr int threads = 3;

    entry<Change> sender{0, true};
    entry<Change> patient_one{1, false};
    entry<Change> other{2, false};
    entry<Change> second{2, true};

    void thread(unsigned number) {
        if (number == 0) {
            require(this->send(sender, 1), "it is not closed");
        } else if (number == 1) {
            require(this->receive(patient_one) == 1, "the element, or what was passed on");
        } else if (this->receive_and_give_up(other, true) != 0) {
            require(this->send(second, 1), "passed on");
        }
    }
    void after() { require(this->try_receive() == 0, "not twice"); }
};

/// Sends, then closes: the receiver gets the element, then the end.
template <class Change, std::size_t Room>
struct closed_behind : shared<Change, Room> {
    static constexpr int threads = 2;

    entry<Change> sender{0, true};
    entry<Change> first{1, false};
    entry<Change> last{1, false};

    void thread(unsigned number) {
        if (number == 0) {
            require(this->send(sender, 1), "not closed yet");
            this->ch.close();
        } else {
            require(this->receive(first) == 1, "the element");
            require(this->receive(last) == 0, "the end");
        }
    }
    void after() {}
};

/// Closed while an element is sent: it is received, or was refused.
template <class Change>
struct closed_across : shared<Change, 1> {
    static constexpr int threads = 3;

    entry<Change> sender{0, true};
    entry<Change> receivers[2]{{1, false}, {1, false}};
    int sent = -1;
    int received = 0;

    void thread(unsigned number) {
        if (number == 0) {
            sent = this->send(sender, 1) ? 1 : 0;
        } else if (number == 1) {
            for (auto& r : receivers) {
                const int n = this->receive(r);
                received += n;
                if (n == 0) {
                    return;
                }
            }
        } else {
            this->ch.close();
        }
    }
    void after() { require(sent == received, "what was sent was received"); }
};

/// Reduces sequential consistency to release and acquire.
struct no_common_order : without_spurious_failures {
    static constexpr std::memory_order order(call made, std::memory_order said) {
        if (said != std::memory_order_seq_cst) {
            return said;
        }
        return made == call::load    ? std::memory_order_acquire
               : made == call::store ? std::memory_order_release
                                     : std::memory_order_acq_rel;
    }
};

using quick = without_spurious_failures;

// The bounds on preemptions keep each model below two seconds. Where a bound is low, a random
// sample without a bound follows.

TEST(ChannelModelG1, TwoThroughOne_OneInterruption) {
    expect_proof<one_to_one<quick, 1, 2>>(at_most{1});
    expect_no_failure<one_to_one<quick, 1, 2>>(at_random{10'000});
}
TEST(ChannelModelG1, TwoThroughTwo_OneInterruption) {
    expect_proof<one_to_one<quick, 2, 2>>(at_most{1});
    expect_no_failure<one_to_one<quick, 2, 2>>(at_random{10'000});
}
TEST(ChannelModelG1, OneThroughOne_ThreeInterruptions) {
    expect_proof<one_to_one<quick, 1, 1>>(at_most{3});
}
TEST(ChannelModelG1, Rendezvous_TwoInterruptions) {
    expect_proof<one_to_one<quick, 0, 2>>(at_most{2});
    expect_no_failure<one_to_one<quick, 0, 2>>(at_random{10'000});
}
TEST(ChannelModelG1, Unbounded_TwoInterruptions) {
    expect_proof<one_to_one<quick, unbounded, 2>>(at_most{2});
    expect_no_failure<one_to_one<quick, unbounded, 2>>(at_random{10'000});
}
TEST(ChannelModelG1, SendsOfOneContextAreReceivedInOrder_OneInterruption) {
    expect_proof<sends_of_one_context<quick, 1, 3>>(at_most{1});
    expect_no_failure<sends_of_one_context<quick, 1, 3>>(at_random{10'000});
}
TEST(ChannelModelG3, CancelledWhileAnElementComes_TwoInterruptions) {
    expect_proof<gives_up<quick, 1, false>>(at_most{2});
    expect_proof<gives_up<quick, 0, false>>(at_most{2});
    expect_proof<gives_up<quick, unbounded, false>>(at_most{2});
}
TEST(ChannelModelG5, DestroyedWhileAnElementComes_TwoInterruptions) {
    expect_proof<gives_up<quick, 1, true>>(at_most{2});
    expect_proof<gives_up<quick, 0, true>>(at_most{2});
    expect_proof<gives_up<quick, unbounded, true>>(at_most{2});
}
TEST(ChannelModelG1, OneOfTwoIsCancelled_OneInterruption) {
    expect_proof<one_of_two_gives_up<quick>>(at_most{1});
    expect_no_failure<one_of_two_gives_up<quick>>(at_random{10'000});
}
TEST(ChannelModelG1, ClosedBehindAnElement_TwoInterruptions) {
    expect_proof<closed_behind<quick, 1>>(at_most{2});
    expect_proof<closed_behind<quick, 0>>(at_most{2});
    expect_proof<closed_behind<quick, unbounded>>(at_most{2});
}
TEST(ChannelModelG1, ClosedWhileAnElementGoesIn_OneInterruption) {
    expect_proof<closed_across<quick>>(at_most{1});
    expect_no_failure<closed_across<quick>>(at_random{20'000});
}

TEST(ChannelModelG1, BatchesThroughTwo_OneInterruption) {
    expect_proof<in_batches<quick, 2, 2>>(at_most{1});
    expect_no_failure<in_batches<quick, 2, 4>>(at_random{2'000});
}
TEST(ChannelModelG1, BatchesThroughOne_RandomInterruptions) {
    expect_no_failure<in_batches<quick, 1, 3>>(at_random{2'000});
}
TEST(ChannelModelG1, ClosedWhileABatchGoesIn_RandomInterruptions) {
    expect_no_failure<batch_closed_across<quick>>(at_random{10'000});
}
TEST(ChannelModelG1, BiasedBatchesThroughTwo_OneInterruption) {
    expect_proof<in_batches<biased<>, 2, 2>>(at_most{1});
    expect_no_failure<in_batches<biased<>, 2, 4>>(at_random{2'000});
}

TEST(ChannelModelG1, BiasedOneThroughOne_TwoInterruptions) {
    expect_proof<one_to_one<biased<>, 1, 1>>(at_most{2});
    expect_no_failure<one_to_one<biased<>, 1, 1>>(at_random{10'000});
}
TEST(ChannelModelG1, BiasedThreeThroughTwo_OneInterruption) {
    expect_proof<one_to_one<biased<>, 2, 3>>(at_most{1});
    expect_no_failure<one_to_one<biased<>, 2, 3>>(at_random{10'000});
}
TEST(ChannelModelG1, BiasedSendsOfOneContextAreReceivedInOrder_OneInterruption) {
    expect_proof<sends_of_one_context<biased<>, 1, 2>>(at_most{1});
    expect_no_failure<sends_of_one_context<biased<>, 2, 3>>(at_random{10'000});
}
TEST(ChannelModelG1, BiasedAndClosedBehindAnElement_OneInterruption) {
    expect_proof<closed_behind<biased<>, 1>>(at_most{1});
    expect_no_failure<closed_behind<biased<>, 1>>(at_random{10'000});
}
TEST(ChannelModelG5, BiasedAndDestroyedWhileAnElementComes_OneInterruption) {
    expect_proof<gives_up<biased<>, 1, true>>(at_most{1});
    expect_no_failure<gives_up<biased<>, 1, true>>(at_random{10'000});
}

// Canaries.

TEST(ChannelModelCanary, BiasEndedWithoutAHeavyFence) {
    using weak = biased<no_heavy_fences>;
    expect_found<one_to_one<weak, 1, 1>>(rl::test_result_deadlock, at_most{2});
}
TEST(ChannelModelCanary, SectionsWithoutALightFence) {
    using weak = biased<no_light_fences>;
    expect_found<one_to_one<weak, 1, 1>>(rl::test_result_deadlock, at_most{2});
}
TEST(ChannelModelCanary, MarksAndClaimsWithoutACommonOrder) {
    expect_found<one_to_one<no_common_order, 1, 1>>(rl::test_result_deadlock, at_most{3});
}
TEST(ChannelModelCanary, CellsThatOrderNothing) {
    expect_found<one_to_one<relaxed<call::store>, 1, 1>>(rl::test_result_data_race, at_most{3});
    expect_found<in_batches<relaxed<call::store>, 2, 2>>(rl::test_result_data_race, at_most{2});
}
TEST(ChannelModelCanary, MarksAndClaimsOfBatchesWithoutACommonOrder) {
    expect_found<in_batches<no_common_order, 2, 2>>(rl::test_result_deadlock, at_random{100'000});
}
TEST(ChannelModelCanary, CombiningLocksThatOrderNothing) {
    using weak = relaxed<call::compare_weak>;
    expect_found<one_to_one<weak, unbounded, 1>>(rl::test_result_data_race, at_most{3});
}

} // namespace
