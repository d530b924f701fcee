// task_list without an event loop: task states, lists, counts, and tasks that are held back.

#include "context/fake_tasks.hpp"

#include <coil/context/detail/destructor_waits.hpp>
#include <coil/context/detail/kill_requests.hpp>
#include <coil/context/detail/remote_child.hpp>
#include <coil/context/detail/task_list.hpp>
#include <coil/context/io_context.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace {

using namespace context_test;

TEST(TaskState, ATaskOwnedByATaskObjectHasStateNone) {
    promise_base promise;
    std::coroutine_handle<> owner;
    promise.owning_handle = &owner;
    EXPECT_EQ(promise.link.state(), task_state::none);
}

TEST(TaskState, NamesWhereATaskIs) {
    counted_list here;
    task_list there;
    fake_task t;
    begin_spawned(t.promise);
    EXPECT_EQ(t.state(), task_state::spawned);
    here.tasks.receive(t.promise);
    EXPECT_EQ(t.state(), task_state::listed);
    EXPECT_TRUE(here.tasks.has(t.promise));
    begin_moving(t.promise);
    EXPECT_EQ(t.state(), task_state::moving);
    EXPECT_TRUE(here.tasks.empty());
    there.adopt(t.promise);
    EXPECT_EQ(t.state(), task_state::listed);
    leave_context(t.promise);
    EXPECT_TRUE(is_unowned(t.promise));
    EXPECT_TRUE(there.empty());
    here.tasks.adopt(t.promise);
    EXPECT_EQ(t.state(), task_state::listed);
    end_task(t.promise);
    EXPECT_EQ(t.state(), task_state::ended);
    EXPECT_TRUE(here.tasks.empty());
}

TEST(TaskState, ATaskIsUnlinkedFromAnyPlaceOfAList) {
    for (const std::size_t removed : {0U, 1U, 2U}) {
        counted_list here;
        std::array<fake_task, 3> all;
        for (fake_task& t : all) {
            here.tasks.add(t.promise);
        }
        end_task(all[removed].promise);
        for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(here.tasks.has(all[i].promise), i != removed);
            EXPECT_EQ(all[i].state(), i == removed ? task_state::ended : task_state::listed);
        }
        EXPECT_EQ(here.tasks.count(), 2U);
        auto& list = here.tasks.listed();
        std::size_t oldest = 0;
        for (auto* each = list.previous(list.end()); each != nullptr; each = list.previous(*each)) {
            oldest += oldest == removed ? 1 : 0;
            ASSERT_LT(oldest, all.size());
            EXPECT_EQ(each, &all[oldest++].promise); // from the end of the list
        }
        EXPECT_EQ(oldest, removed == 2 ? 2U : 3U);
    }
}

TEST(TaskState, AnUnownedTaskEndsWithoutAList) {
    const std::uint64_t before = tasks_left_on_this_thread;
    fake_task t;
    begin_unowned(t.promise);
    end_task(t.promise);
    EXPECT_EQ(t.state(), task_state::ended);
    EXPECT_EQ(tasks_left_on_this_thread, before); // it was in no context
}

TEST(TaskList, CountsTheTasksInIt) {
    counted_list here;
    std::array<fake_task, 3> all;
    for (fake_task& t : all) {
        here.tasks.add(t.promise);
    }
    EXPECT_EQ(here.tasks.count(), 3U);
    leave_context(all[1].promise);
    EXPECT_EQ(here.tasks.count(), 2U);
    EXPECT_EQ(here.tasks.inserted(), 3U);
}

TEST(TaskList, NestedListsAreCountedSeparately) {
    counted_list outer;
    fake_task a;
    fake_task b;
    outer.tasks.add(a.promise);
    {
        counted_list inner;
        inner.tasks.add(b.promise);
        end_task(b.promise);
        EXPECT_EQ(inner.tasks.count(), 0U);
    }
    EXPECT_EQ(outer.tasks.count(), 1U);
}

TEST(TaskList, LoadCountsWhatWasSentAndHasNotArrived) {
    counted_list here;
    fake_task t;
    fake_task own;
    here.tasks.add(own.promise);
    EXPECT_EQ(here.tasks.load(1, true), 2U); // one here, one on its way
    begin_spawned(t.promise);
    here.tasks.receive(t.promise);
    EXPECT_EQ(here.tasks.load(1, true), 2U);
    // The published count does not include its own task yet.
    EXPECT_EQ(here.tasks.load(1, false), 1U);
    here.tasks.publish();
    EXPECT_EQ(here.tasks.load(1, false), 2U);
    EXPECT_EQ(here.tasks.load(0, true), 1U); // at least the tasks in the list
}

TEST(TaskList, ADestructorMayAddATask) {
    counted_list here;
    fake_task first;
    fake_task second;
    const fake_task::inserter more{here.tasks, second};
    first.when_destroyed = &more;
    here.tasks.add(first.promise);
    here.tasks.destroy_if([](const promise_base&) noexcept { return true; });
    EXPECT_TRUE(first.destroyed);
    EXPECT_TRUE(second.destroyed);
    EXPECT_TRUE(here.tasks.empty());
}

TEST(TaskList, G5_HoldsBackTheTasksWithRemoteOperations) {
    counted_list here;
    fake_task with;
    fake_task without;
    here.tasks.add(with.promise);
    here.tasks.add(without.promise);
    away one(here.tasks, &with.promise);
    away two(here.tasks, &with.promise);
    here.tasks.hold_back();
    EXPECT_EQ(one.stops, 1);
    EXPECT_EQ(two.stops, 1);
    EXPECT_EQ(with.state(), task_state::held_back);
    EXPECT_EQ(without.state(), task_state::listed);
    EXPECT_TRUE(here.tasks.has(with.promise));
    here.tasks.destroy_newest();
    EXPECT_TRUE(without.destroyed);
    EXPECT_TRUE(here.tasks.empty());
    EXPECT_TRUE(here.tasks.holds_back());
    EXPECT_EQ(here.tasks.count(), 1U);
    one.back();
    here.tasks.hold_back();
    EXPECT_EQ(with.state(), task_state::held_back);
    two.back();
    here.tasks.hold_back();
    EXPECT_EQ(with.state(), task_state::listed);
    here.tasks.destroy_newest();
    EXPECT_EQ(here.tasks.count(), 0U);
}

TEST(TaskList, G5_ATaskIsListedWhenTheLastOfItsRemoteOperationsHasEnded) {
    counted_list here;
    fake_task t;
    here.tasks.add(t.promise);
    away one(here.tasks, &t.promise);
    away two(here.tasks, &t.promise);
    EXPECT_TRUE(here.tasks.must_hold_back());
    here.tasks.hold_back();
    EXPECT_FALSE(here.tasks.must_hold_back());
    one.is_away = false;
    here.tasks.await_ends(one);
    here.tasks.await_ends(one); // counted once
    EXPECT_EQ(t.state(), task_state::held_back);
    two.is_away = false;
    here.tasks.await_ends(two);
    EXPECT_EQ(t.state(), task_state::listed);
    away three(here.tasks, &t.promise);
    here.tasks.await_ends(three); // not counted
    EXPECT_TRUE(here.tasks.must_hold_back());
    here.tasks.hold_back();
    EXPECT_EQ(t.state(), task_state::held_back);
    EXPECT_FALSE(here.tasks.may_hold_back_less());
    here.tasks.kill_requested(t.promise); // the operation was only asked to stop
    EXPECT_TRUE(here.tasks.may_hold_back_less());
    three.back();
    here.tasks.hold_back();
    here.tasks.destroy_newest();
}

TEST(TaskList, G5_HoldsBackAllButRemoteChildrenIfATreeIsUnknown) {
    counted_list here;
    fake_task usual;
    fake_task remote(true);
    here.tasks.add(usual.promise);
    here.tasks.add(remote.promise);
    away one(here.tasks, nullptr);
    here.tasks.hold_back();
    EXPECT_TRUE(here.tasks.tree_unknown());
    EXPECT_EQ(usual.state(), task_state::held_back);
    EXPECT_EQ(remote.state(), task_state::listed);
    here.tasks.destroy_newest_held_back();
    EXPECT_TRUE(usual.destroyed);
    EXPECT_FALSE(here.tasks.holds_back());
    one.back();
}

/// A child of a scope.
struct fake_child final : task_owner {
    fake_child(promise_base* joined_by, promise_base* owned_by)
        : task_owner({}, false, kind::bound), joined_by_(joined_by), owned_by_(owned_by) {
        promise.become_root(*this);
    }
    void finished(promise_base&) noexcept override {}
    void abandoned(promise_base&) noexcept override {}
    [[nodiscard]] promise_base* awaiting_root() const noexcept override { return joined_by_; }
    [[nodiscard]] promise_base* owning_root() const noexcept override { return owned_by_; }

    promise_base promise;

private:
    promise_base* const joined_by_;
    promise_base* const owned_by_;
};

/// Destroying the task that joins a scope does not destroy the children of the scope.
TEST(TaskList, G5_HoldsBackTheOwnerOfAScopeAndNotTheTaskThatJoinsIt) {
    counted_list here;
    fake_task joins;
    fake_task owns;
    here.tasks.add(joins.promise);
    here.tasks.add(owns.promise);
    fake_child child(&joins.promise, &owns.promise);
    away one(here.tasks, &child.promise);
    here.tasks.hold_back();
    EXPECT_FALSE(here.tasks.tree_unknown());
    EXPECT_EQ(owns.state(), task_state::held_back);
    EXPECT_EQ(joins.state(), task_state::listed);
    one.back();
    here.tasks.hold_back();
    here.tasks.destroy_newest();
    here.tasks.destroy_newest();
}

TEST(TaskList, RefuseUnwantedReachesListedAndHeldBackTasks) {
    counted_list here;
    fake_task listed;
    fake_task held;
    here.tasks.add(listed.promise);
    here.tasks.add(held.promise);
    away one(here.tasks, &held.promise);
    here.tasks.hold_back();
    here.tasks.refuse_unwanted();
    EXPECT_EQ(listed.refused, 1);
    EXPECT_EQ(held.refused, 1);
    one.back();
}

/// A remote child in the state in which event_loop::adopt() leaves it.
struct remote_task final : remote_child_owner {
    remote_task() : remote_child_owner({}) {
        promise.become_root(*this);
        begin_unowned(promise);
    }
    void finished(promise_base&) noexcept override {}
    void abandoned(promise_base&) noexcept override {
        destroyed = true;
        if (on_destruction) {
            on_destruction();
        }
    }
    [[nodiscard]] promise_base& child() noexcept override { return promise; }
    void request() { request_kill(ticket); }

    struct child_ticket : queue_node, remote_child_ticket {
        explicit child_ticket(remote_child_owner& awaiter) : remote_child_ticket(awaiter) {}
    };
    child_ticket ticket{*this};
    promise_base promise;
    std::function<void()> on_destruction;
    bool destroyed = false;
};

TEST(KillRequests, DestroyARemoteChildWhenNothingOfItIsElsewhere) {
    counted_list here;
    destructor_waits waits;
    kill_requests kills(here.tasks, waits);
    coil::io_context context;
    remote_task requested;
    remote_task other;
    here.tasks.adopt(requested.promise);
    here.tasks.adopt(other.promise);
    requested.request();
    kills.note(requested);
    away below(here.tasks, &requested.promise);
    kills.process(context.loop());
    EXPECT_EQ(below.kills, 1);
    EXPECT_FALSE(requested.destroyed);
    EXPECT_TRUE(kills.pending());
    below.back();
    kills.process(context.loop());
    EXPECT_TRUE(requested.destroyed);
    EXPECT_FALSE(other.destroyed);
    EXPECT_FALSE(kills.pending());
}

TEST(KillRequests, WhatIsFreedByADestructionIsDestroyedInTheSamePass) {
    counted_list here;
    destructor_waits waits;
    kill_requests kills(here.tasks, waits);
    coil::io_context context;
    remote_task parent;
    remote_task child; // on the same loop
    here.tasks.adopt(parent.promise);
    here.tasks.adopt(child.promise);
    away below(here.tasks, &parent.promise);
    child.on_destruction = [&] { below.back(); };
    for (remote_task* each : {&parent, &child}) {
        each->request();
        kills.note(*each);
    }
    kills.process(context.loop());
    EXPECT_TRUE(child.destroyed);
    EXPECT_TRUE(parent.destroyed);
    EXPECT_FALSE(kills.pending());
}

TEST(DestructorWaits, ACauseIsFollowedFromLoopToLoop) {
    destructor_waits waits_here;
    destructor_waits waits_elsewhere;
    const destructor_waits::scope waiting(waits_here);
    {
        // The other loop destroys a task because of the destructor that waits here.
        const destructor_waits::on_behalf_of destroying(waits_elsewhere, &waiting);
        const destructor_waits::scope parent(waits_elsewhere);
        EXPECT_TRUE(waits_here.contain(waits_elsewhere.cause()));
    }
    EXPECT_FALSE(waits_here.contain(waits_elsewhere.cause()));
}

TEST(KillRequests, ADestructorThatWaitsDestroysOnlyWhatHasArrivedSince) {
    counted_list here;
    destructor_waits waits;
    kill_requests kills(here.tasks, waits);
    coil::io_context context;
    remote_task earlier; // arrived in epoch 0
    here.tasks.adopt(earlier.promise);
    earlier.request();
    kills.note(earlier);
    {
        const destructor_waits::scope destructor(waits);
        kills.process_arrived();
        EXPECT_FALSE(earlier.destroyed); // one of its coroutines may be on the stack
    }
    EXPECT_EQ(waits.epoch(), 2U);
    kills.process(context.loop());
    EXPECT_TRUE(earlier.destroyed);
}

} // namespace
