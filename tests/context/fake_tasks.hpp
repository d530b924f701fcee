#pragma once

#include <coil/context/detail/task_list.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/top_level_task.hpp>

#include <gtest/gtest.h>

// Top-level tasks and remote operations for tests of task_list.

namespace context_test {

using namespace coil::detail;

/// A task without a coroutine, and its owner.
struct fake_task final : task_owner {
    explicit fake_task(bool is_remote = false)
        : task_owner({}, false, is_remote ? kind::remote_child : kind::usual) {
        promise.become_root(*this);
        promise.link = task_link(task_state::none);
    }
    void finished(promise_base&) noexcept override {}
    void abandoned(promise_base& p) noexcept override {
        EXPECT_TRUE(p.link.is(task_state::ended));
        destroyed = true;
        if (when_destroyed != nullptr) {
            when_destroyed->insert_another();
        }
    }
    [[nodiscard]] bool is_kill_requested() const noexcept override { return kill_requested; }
    void refuse_unwanted() noexcept override { ++refused; }
    [[nodiscard]] task_state state() const { return promise.link.state(); }

    struct inserter {
        void insert_another() const { tasks.add(other.promise); }
        task_list& tasks;
        fake_task& other;
    };

    promise_base promise;
    bool destroyed = false;
    bool kill_requested = false;
    int refused = 0;
    const inserter* when_destroyed = nullptr;
};

/// A remote operation awaited by the top-level task `root`; pending until back() is called.
struct away final : away_node {
    away(task_list& tasks, promise_base* root) : away_node(&still_away) {
        go_away(tasks.away(), root);
    }
    static bool still_away(away_node& node, request what) noexcept {
        auto& self = static_cast<away&>(node);
        (what == request::stop ? self.stops : self.kills) += 1;
        return self.is_away;
    }
    void back() {
        is_away = false;
        come_back();
    }
    int stops = 0;
    int kills = 0;
    bool is_away = true;
};

/// A list whose tasks are counted on this thread.
struct counted_list {
    counted_list() { tasks.toggle_counting(); }
    ~counted_list() { tasks.toggle_counting(); }
    task_list tasks;
};

} // namespace context_test
