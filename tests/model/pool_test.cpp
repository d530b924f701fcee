// How the workers of a pool sleep and are woken: none sleeps while work waits; a stop ends all of
// them; a thread that waits until all sleep is notified.

#include "model/parts.hpp"
#include "model/pool_parts.hpp"

#include <coil/exec/detail/idle_workers.hpp>
#include <coil/exec/detail/injector.hpp>

namespace {

using namespace coil_model;
using quick = without_spurious_failures;

/// A pool of `Workers`, each with space for one piece of work that others may steal. `Threads` is
/// the number of all participants.
template <int Workers, int Threads, class Change, class Fences>
class pool {
public:
    using policy = pool_atomics<Threads, Change, Fences>;
    using idle_workers_type = coil::detail::basic_idle_workers<policy>;

    idle_workers_type idle_workers{Workers};
    coil::detail::basic_injector<message, policy> injector;

    /// Called by a thread that is not a worker.
    [[nodiscard]] bool submit(message& l) {
        return injector.push(l, [this] { idle_workers.wake_one(); });
    }

    /// Called by worker `w`.
    void push(int w) {
        own_[w].word.store(1, std::memory_order_release);
        policy::light_fence();
        if (idle_workers.must_wake()) {
            idle_workers.wake_one();
        }
    }
    [[nodiscard]] bool take(int w) {
        return own_[w].word.load(std::memory_order_relaxed) != 0 &&
               own_[w].word.exchange(0, std::memory_order_acquire) != 0;
    }

    /// Returns a message, or own_work for what a worker has submitted; null after a stop.
    message* find_or_sleep(int w) {
        return idle_workers.find_or_sleep(
            slots_[w],
            [this]() -> message* {
                if (idle_workers.stopped()) {
                    return nullptr;
                }
                taking_.lock();
                message* const taken = injector.take_all().oldest;
                taking_.unlock();
                if (taken != nullptr) {
                    return taken;
                }
                for (int i = 0; i < Workers; ++i) {
                    if (take(i)) {
                        return &own_work;
                    }
                }
                return nullptr;
            },
            [this] {
                bool waits = !injector.arm();
                for (auto& own : own_) {
                    waits = waits || own.word.load(std::memory_order_relaxed) != 0;
                }
                return waits;
            },
            [](auto sleep) { sleep(); });
    }

    message* stop() {
        idle_workers.stop();
        taking_.lock();
        message* const left = injector.close().oldest;
        taking_.unlock();
        return left;
    }

    message own_work;

private:
    struct own_queue {
        atomic<unsigned, Change> word{0};
    };

    fence_cells cells_;
    typename policy::mutex taking_;
    typename idle_workers_type::slot slots_[Workers];
    own_queue own_[Workers];
};

/// Something that happens once, and that others wait for.
class event {
public:
    void set() {
        set_.fetch_add(1);
        set_.wake_all();
    }
    void wait() {
        while (set_.fetch_add(0) == 0) {
            set_.sleep();
        }
    }

private:
    atomic<unsigned, as_written> set_{0};
};

/// A thread submits messages one after the other. The pool is stopped when the last has arrived, or
/// immediately; each message is received or dropped.
template <int Workers, int Messages, bool AtOnce, class Change, class Fences = all_fences>
struct mailed {
    static constexpr int threads = 1 + Workers;

    pool<Workers, threads, Change, Fences> p;
    message messages[Messages];
    event all_came;
    atomic<int, as_written> came{0};
    int times[Messages] = {};
    int dropped = 0;

    void thread(unsigned number) {
        if (number != 0) {
            work(static_cast<int>(number) - 1);
            return;
        }
        for (int i = 0; i < Messages; ++i) {
            messages[i].number = i;
            require(p.submit(messages[i]), "it is not stopped");
        }
        if (!AtOnce) {
            all_came.wait();
        }
        for (message* l = p.stop(); l != nullptr; l = l->next) {
            ++times[l->number.get()];
            ++dropped;
        }
        require(!p.submit(messages[0]), "it is closed");
    }

    void work(int w) {
        while (message* l = p.find_or_sleep(w)) {
            while (l != nullptr) {
                message* const next = l->next;
                ++times[l->number.get()];
                if (came.fetch_add(1) == Messages - 1) {
                    all_came.set();
                }
                l = next;
            }
        }
    }

    void after() {
        require(AtOnce || dropped == 0, "all were taken");
        for (const int n : times) {
            require(n == 1, "each arrives once");
        }
    }
};

/// A worker submits work and continues only when that and the other thread's message are done.
template <class Change, class Fences = all_fences>
struct blocks {
    static constexpr int threads = 2;

    pool<2, threads, Change, Fences> p;
    event done;

    void thread(unsigned number) {
        if (number == 0) {
            p.push(0);
            done.wait();
        } else {
            require(p.find_or_sleep(1) == &p.own_work, "what was pushed");
            done.set();
        }
    }
    void after() {}
};

/// A worker submits work and continues only when it is done. One of two others receives a message
/// that also waits for it.
template <class Change, class Fences = all_fences>
struct two_block {
    static constexpr int threads = 3;

    pool<3, threads, Change, Fences> p;
    message waits;
    event done;

    two_block() { static_cast<void>(p.submit(waits)); }

    void thread(unsigned number) {
        if (number == 0) {
            p.push(0);
            done.wait();
        } else if (p.find_or_sleep(static_cast<int>(number)) == &p.own_work) {
            done.set();
        } else {
            done.wait();
        }
    }
    void after() {}
};

/// Two pieces of work are submitted by workers that wait for a third, which runs them one after the
/// other.
template <class Change, class Fences = all_fences>
struct two_push {
    static constexpr int threads = 3;

    pool<3, threads, Change, Fences> p;
    event done;

    void thread(unsigned number) {
        if (number < 2) {
            p.push(static_cast<int>(number));
            done.wait();
            return;
        }
        for (int i = 0; i < 2; ++i) {
            require(p.find_or_sleep(2) == &p.own_work, "what was pushed");
        }
        done.set();
    }
    void after() {}
};

/// A thread submits a message and waits until all is done.
template <int Workers, class Change, class Fences = all_fences>
struct drained {
    static constexpr int threads = 1 + Workers;

    pool<Workers, threads, Change, Fences> p;
    message sent;
    plain<int> read{0};

    void thread(unsigned number) {
        if (number == 0) {
            require(p.submit(sent), "it is not stopped");
            p.idle_workers.wait_until_idle([this] { return p.injector.looks_empty(); });
            require(read == 1, "the message was read");
            require(p.stop() == nullptr, "nothing is left");
            p.idle_workers.wait_until_idle([this] { return p.injector.looks_empty(); });
            return;
        }
        while (message* const l = p.find_or_sleep(static_cast<int>(number) - 1)) {
            require(l == &sent, "the message");
            read = 1;
        }
        p.idle_workers.leave();
    }
    void after() {}
};

/// A thread waits until all is done, and another stops the pool meanwhile.
template <class Change>
struct stopped_while_drained {
    static constexpr int threads = 3;

    pool<1, threads, Change, all_fences> p;
    message sent;
    int came = 0;

    stopped_while_drained() { static_cast<void>(p.submit(sent)); }

    void thread(unsigned number) {
        if (number == 0) {
            p.idle_workers.wait_until_idle([this] { return p.injector.looks_empty(); });
        } else if (number == 1) {
            came += p.stop() != nullptr ? 1 : 0;
        } else {
            while (p.find_or_sleep(0) != nullptr) {
                ++came;
            }
            p.idle_workers.leave();
        }
    }
    void after() { require(came == 1, "the message was read or dropped"); }
};

/// The submitted work destroys the pool.
template <class Change, class Fences = all_fences>
struct ended_by_work {
    static constexpr int threads = 2;

    destroyable<pool<1, threads, Change, Fences>> p;
    message sent;

    void thread(unsigned number) {
        if (number == 0) {
            require(p->submit(sent), "it is not stopped");
        } else {
            require(p->find_or_sleep(0) == &sent, "the message");
            p.destroy();
        }
    }
    void after() {}
};

TEST(PoolModelG9, OneWorkerTwoMessages_TwoInterruptions) {
    expect_proof<mailed<1, 2, false, quick>>(at_most{2});
    expect_proof<mailed<1, 2, true, quick>>(at_most{2});
    expect_no_failure<mailed<1, 2, true, as_written>>(at_random{20'000});
}

TEST(PoolModelG9, TwoWorkers_OneInterruption) {
    expect_proof<mailed<2, 2, false, quick>>(at_most{1});
    expect_proof<mailed<2, 1, true, quick>>(at_most{1});
    expect_no_failure<mailed<2, 2, false, as_written>>(at_random{20'000});
}

TEST(PoolModelG9, AWorkerThatBlocks_FiveInterruptions) {
    expect_proof<blocks<as_written>>(at_most{5});
}

TEST(PoolModelG9, TwoThatBlock_TwoInterruptions) {
    expect_proof<two_block<quick>>(at_most{2});
    expect_proof<two_push<quick>>(at_most{1});
    expect_no_failure<two_block<as_written>>(at_random{20'000});
}

TEST(PoolModelG5, WaitingUntilItIsIdle_TwoInterruptions) {
    expect_proof<drained<1, quick>>(at_most{2});
    expect_proof<drained<2, quick>>(at_most{1});
    expect_proof<stopped_while_drained<quick>>(at_most{2});
}

TEST(PoolModelG5, WorkThatEndsThePool_FourInterruptions) {
    expect_proof<ended_by_work<as_written>>(at_most{4});
}

// Canaries.

TEST(PoolModelCanary, PushingWithoutALightFence) {
    expect_found<blocks<as_written, no_light_fences>>(rl::test_result_deadlock, at_most{5});
}

TEST(PoolModelCanary, SleepingWithoutAHeavyFence) {
    expect_found<blocks<as_written, no_heavy_fences>>(rl::test_result_deadlock, at_most{5});
}

TEST(PoolModelCanary, RelyingOnASearcherWithoutAFullFence) {
    expect_found<two_block<quick, no_full_fences>>(rl::test_result_deadlock, at_most{3});
}

TEST(PoolModelCanary, SubmittingPublishesNothing) {
    expect_found<mailed<1, 2, false, relaxed<call::compare_weak>>>(rl::test_result_data_race,
                                                                   at_most{4});
}

TEST(PoolModelCanary, ArmingInTwoSteps) {
    expect_found<mailed<1, 2, true, in_two_steps<call::compare_strong>>>(
        rl::test_result_user_assert_failed, at_most{4});
}

} // namespace
