// The end of a run: a stop request is seen or arrives too late, and no thread accesses the loop
// once run() has returned.

#include "model/parts.hpp"

#include <coil/context/detail/loop_signals.hpp>

namespace {

using namespace coil_model;

/// The steps of event_loop. The canaries plant faults in them.
struct faithful {
    static constexpr int short_sleeps =
        1; // sleeps that may end by themselves, as if something had completed
    static constexpr bool waits_for_wakes = true;
    static constexpr bool looks_again = true;
};
struct sleeps_long : faithful {
    static constexpr int short_sleeps = 0;
};
struct leaves_at_once : faithful {
    static constexpr bool waits_for_wakes = false;
};
struct checks_once : sleeps_long {
    static constexpr bool looks_again = false;
};

/// A loop as other threads see it: what event_loop does with its inbox, its signals and its wake-up
/// descriptor.
template <class Change, class Steps = faithful>
class loop {
public:
    explicit loop(bool held = true) {
        if (held) {
            parts_->hold.acquire();
        }
    }

    // May be called from any thread.
    void post(message& l) {
        if (parts_->box.push(l)) {
            wake();
        }
    }
    void stop() {
        if (parts_->stop.make()) {
            post(stop_node_);
        }
    }
    void release() {
        if (parts_->hold.release(parts_->box)) {
            wake();
        }
    }
    void forget_stop() { parts_->stop.forget(); }

    // Owner only. True: stopped; false: no work was left.
    bool run() {
        const bool stopped = run_until_done();
        if (Steps::waits_for_wakes && !wakes_.untouched()) {
            while (!wakes_.settled()) {
                wakes_.saw(wake_up_.wait());
            }
            wakes_.clear();
        }
        return stopped;
    }
    void destroy() {
        descriptor_ = -1;
        parts_.destroy();
    }
    [[nodiscard]] int delivered() const { return delivered_; }

private:
    struct parts {
        inbox<Change> box;
        coil::detail::basic_stop_request<atomics<Change>> stop;
        coil::detail::basic_work_guard<atomics<Change>> hold;
    };

    void wake() {
        require(descriptor_ != -1, "the loop is there");
        wake_up_.write();
    }

    bool run_until_done() {
        for (;;) {
            if (deliver_inbox()) {
                return true;
            }
            if (parts_->hold.held()) {
                park();
            } else if (!Steps::looks_again || parts_->box.empty()) {
                return false;
            }
        }
    }
    void park() {
        if (!parts_->box.try_park()) {
            return;
        }
        if (parts_->hold.held() && !wakes_by_itself()) {
            wakes_.saw(wake_up_.wait());
        }
        if (!parts_->box.unpark()) {
            wakes_.expect();
        }
    }
    bool wakes_by_itself() {
        if (short_sleeps_ == 0 || rl::rand(2) == 0) {
            return false;
        }
        --short_sleeps_;
        return true;
    }
    bool deliver_inbox() {
        bool stop = false;
        for (message* l = parts_->box.take_all(); l != nullptr;) {
            message* const following = l->next;
            if (l == &stop_node_) {
                stop = parts_->stop.arrived();
            } else {
                ++delivered_;
            }
            l = following;
        }
        return stop;
    }

    destroyable<parts> parts_;
    message stop_node_;
    plain<int> descriptor_{3};
    wake_up_fd wake_up_; // belongs to the kernel: it may outlive the descriptor
    coil::detail::wake_account wakes_;
    int short_sleeps_ = Steps::short_sleeps;
    int delivered_ = 0; // messages posted by others
};

/// Stopped by another thread `Times` times. If `Times` is 1, the loop is destroyed after the stop.
template <class Change, int Times, class Steps = faithful>
struct stopped {
    static constexpr int threads = 2;

    loop<Change, Steps> it;

    void thread(unsigned number) {
        if (number == 0) {
            require(it.run(), "the stop was seen");
            if (Times == 1) {
                it.destroy();
            }
        } else {
            for (int i = 0; i < Times; ++i) {
                it.stop();
            }
        }
    }
    void after() {}
};

/// Two threads stop a loop simultaneously. The second request may stop the next run, but no other.
template <class Change>
struct stopped_by_two {
    static constexpr int threads = 3;

    loop<Change, sleeps_long> it;

    void thread(unsigned number) {
        if (number == 0) {
            require(it.run(), "a stop was seen");
        } else {
            it.stop();
        }
    }
    void after() {
        it.release();
        it.run();
        require(!it.run(), "two stops end two runs at most");
        it.destroy();
    }
};

/// join(): everything posted before is done, the work guard is released, and the loop is destroyed.
template <class Change, class Steps = faithful>
struct joined {
    static constexpr int threads = 2;

    loop<Change, Steps> it;
    message work;
    wake_up_fd ended;

    void thread(unsigned number) {
        if (number == 0) {
            require(!it.run(), "it was not stopped");
            require(it.delivered() == 1, "no work is left behind");
            ended.write();
        } else {
            it.post(work);
            it.release();
            ended.wait();
            it.destroy();
        }
    }
    void after() {}
};

/// A stop that races with join() ends this run or none, but not the next.
template <class Change>
struct stopped_and_joined {
    static constexpr int threads = 3;

    loop<Change, sleeps_long> it;

    void thread(unsigned number) {
        if (number == 0) {
            it.run();
        } else if (number == 1) {
            it.release();
        } else {
            it.stop();
        }
    }
    void after() {
        it.forget_stop();
        require(!it.run(), "the next run is not stopped");
        it.destroy();
    }
};

/// A thread that accesses the loop after run() has returned.
struct touched_too_late {
    static constexpr int threads = 2;

    loop<as_written> it;

    void thread(unsigned number) {
        if (number == 0) {
            it.run();
            it.destroy();
        } else {
            it.stop();
            it.stop();
        }
    }
    void after() {}
};

TEST(StopModelG5, StoppedByAnotherThread_TheLoopIsDestroyedAtOnce) {
    expect_proof<stopped<as_written, 1>>(everything{});
}

TEST(StopModelG5, StoppedTwice) {
    expect_proof<stopped<without_spurious_failures, 2>>(everything{});
}

TEST(StopModelG5, StoppedByTwoThreads) {
    expect_proof<stopped_by_two<without_spurious_failures>>(everything{});
}

TEST(StopModelG9, JoinDoesWhatWasPostedBefore) {
    expect_proof<joined<as_written, sleeps_long>>(everything{});
}

TEST(StopModelG9, AStopThatRacesWithJoinDoesNotReachTheNextRun) {
    // The full search takes 5 million interleavings.
    expect_proof<stopped_and_joined<as_written>>(at_most(4));
}

// Canaries.

TEST(StopModelCanary, ALoopDestroyedBeforeItsWakeUpArrives) {
    expect_found<stopped<as_written, 1, leaves_at_once>>(rl::test_result_data_race, everything{});
}

TEST(StopModelCanary, ALoopThatDoesNotCheckAgainWhenTheWorkGuardIsReleased) {
    expect_found<joined<as_written, checks_once>>(rl::test_result_user_assert_failed, everything{});
}

TEST(StopModelCanary, AWorkGuardWhoseReleaseIsSeenTooLate) {
    expect_found<joined<relaxed<call::load>, sleeps_long>>(rl::test_result_deadlock, everything{});
}

TEST(StopModelCanary, AStopThatOrdersNothing) {
    expect_found<stopped<relaxed<call::fetch_or>, 2>>(rl::test_result_data_race, everything{});
}

TEST(StopModelCanary, AStopperThatAccessesADestroyedLoop) {
    expect_found<touched_too_late>(rl::test_result_access_to_freed_memory, everything{});
}

} // namespace
