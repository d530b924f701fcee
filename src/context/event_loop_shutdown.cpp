// How a loop ends: all at once, and nothing is destroyed before what may refer to it.
//
// Each await of the loop that something elsewhere will end is asked to end it; the tasks that these
// awaits belong to are held back until the answers have come by the inbox, and all others are
// destroyed meanwhile. A task that was given to this loop by a coroutine elsewhere (on()) is an
// answer to somebody else's question: it is destroyed like any other, and the coroutine is told.
// What waits for what is a tree, and only its inner nodes wait; so loops that end at the same time
// and wait for each other's tasks make progress from the leaves upwards.

#include "event_loop_enter.hpp"

#include <coil/context/event_loop.hpp>
#include <coil/context/runtime.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>

namespace coil::detail {

/// One request for all that is in flight, so that what takes long to cancel is waited for together.
/// An accelerator only: each destroyed frame makes sure of its own. The kernel searches all of them
/// for each that it cancels, so many are left to the frames, whose requests it finds by a hash.
void event_loop::cancel_everything(std::uint32_t at_most) noexcept {
    if (submissions_.in_flight() == 0 || submissions_.in_flight() > at_most || !ring_.reserve(1)) {
        return;
    }
    uring::sqe* entry = ring_->acquire();
    *entry = uring::prep::cancel_any();
    entry->user_data = static_cast<std::uint64_t>(completion_kind::ignore);
    ring_->commit(entry);
    ring_.enter(0, nullptr, 0);
    reap();
}

/// In a runtime's round the contexts leave together: until the last has ended, tasks may come that
/// another one waits for.
void event_loop::shut_down() noexcept {
    const bool in_round = round_.takes_part() && on_owner_thread();
    if (!ending_) {
        begin_shutdown();
    }
    destroy_everything();
    if (in_round) {
        round_.finish();
        for (int waited = 0; !round_.all_finished();) {
            wait_in_shutdown(waited);
            destroy_everything();
        }
    }
    finish_shutdown();
}

void event_loop::begin_shutdown() noexcept {
    constexpr std::uint32_t many = 1024;
    if (round_.takes_part() && on_owner_thread()) {
        round_.owner()->stop(); // or the others would go on without this one
    }
    ending_ = true;
    // Only run() leaves something in flight behind, and it ends with a shutdown on its own thread.
    if (on_owner_thread()) {
        submissions_.cancel_queued();
        cancel_everything(many);
    }
}

void event_loop::finish_shutdown() noexcept {
    if (on_owner_thread()) {
        cancel_detached_operations();
    }
    clear_ready();
    ending_ = false;
}

void event_loop::destroy_everything() noexcept {
    for (int waited = 0;;) {
        switch (go_on_with_shutdown()) {
        case shutdown_state::goes_on:
            waited = 0;
            break;
        case shutdown_state::waits:
            wait_in_shutdown(waited);
            break;
        case shutdown_state::over:
            return;
        }
    }
}

/// Does what can be done without waiting. Destructors may post functions, and start tasks.
event_loop::shutdown_state event_loop::go_on_with_shutdown() noexcept {
    deliver_inbox();
    clear_ready();
    functions_.call_all(*this);
    hold_back_tasks();
    if (destroy_free_tasks()) {
        return shutdown_state::goes_on;
    }
    if (!held_back_.empty()) {
        return shutdown_state::waits;
    }
    functions_.call_all(*this);
    return inbox_.empty() && tasks_.empty() && functions_.empty() ? shutdown_state::over
                                                                  : shutdown_state::goes_on;
}

void event_loop::wait_in_shutdown(int& waited) noexcept {
    constexpr int often = 32; // then a message hardly comes any more: look less often
    refuse_unwanted();
    service_idle_loops();
    if (inbox_.empty()) {
        wait_for_messages(++waited > often);
    } else {
        deliver_inbox();
    }
    destroy_one_if_stuck(waited);
}

/// Where the tree is not known, any of the roots may hold what is elsewhere, and what that waits
/// for may be the destructor of another: now and then one is destroyed, and waits in its destructor
/// if it must.
void event_loop::destroy_one_if_stuck(int waited) noexcept {
    constexpr int patience_in_turns = 16; // of a millisecond
    if (tree_unknown_ && !held_back_.empty() && waited % patience_in_turns == 0) {
        promise_base& newest = *held_back_.first();
        tasks_.move_back(newest);
        destroy_task(newest);
    }
}

void event_loop::abandon_remote_children() noexcept {
    deliver_inbox();
    hold_back_tasks();
    promise_base* root = tasks_.first();
    while (root != nullptr) {
        if (root->owner().is_remote_child) {
            destroy_task(*root);
            root = tasks_.first(); // its destructors may have changed the list
        } else {
            root = root->next_task;
        }
    }
}

/// Asks everything that is elsewhere to end, and parts the roots that must wait for it from the
/// others.
void event_loop::hold_back_tasks() noexcept {
    while (!held_back_.empty()) {
        tasks_.move_back(*held_back_.first());
    }
    tree_unknown_ = false;
    for (away_node* each = away_; each != nullptr;) {
        away_node& node = *each;
        each = node.next; // asking unlinks nothing
        if (!node.status_(node, away_node::request::stop)) {
            continue;
        }
        promise_base* const root = top_level_of(node.root_);
        if (root == nullptr) {
            tree_unknown_ = true;
        } else if (root->link != nullptr && !is_unowned(*root)) {
            tasks_.move_to(held_back_, *root);
        }
    }
    if (tree_unknown_) {
        for (promise_base* root = tasks_.first(); root != nullptr;) {
            promise_base& one = *root;
            root = one.next_task;
            if (!one.owner().is_remote_child) {
                tasks_.move_to(held_back_, one);
            }
        }
    }
}

/// False when there was none. Those that others wait for may have what is elsewhere as well when
/// the tree is not known; then their destructor waits for it.
bool event_loop::destroy_free_tasks() noexcept {
    const bool any = !tasks_.empty();
    while (!tasks_.empty()) {
        clear_ready();
        destroy_task(*tasks_.first());
    }
    return any;
}

void event_loop::destroy_task(promise_base& root) noexcept {
    task_list::remove(root);
    root.link = nullptr; // it is in no list while its frame is being destroyed
    root.owner().abandoned(root);
}

/// Nothing that is ready runs any more.
void event_loop::clear_ready() noexcept {
    ready_.clear();
    functions_.lost_turn();
}

bool event_loop::has_task(const promise_base& root) const noexcept {
    for (const promise_base* first : {tasks_.first(), held_back_.first()}) {
        for (const promise_base* one = first; one != nullptr; one = one->next_task) {
            if (one == &root) {
                return true;
            }
        }
    }
    return false;
}

void event_loop::abandon_tree(const promise_base& root) noexcept {
    const auto is_in_tree = [&root](const promise_base& one) {
        const promise_base* above = &one;
        while (above != nullptr && above != &root && above->is_root()) {
            above = above->owner().awaiting_root();
        }
        return above == &root;
    };
    promise_base* one = tasks_.first();
    while (one != nullptr) {
        if (one->owner().is_remote_child && is_in_tree(*one)) {
            destroy_task(*one);
            one = tasks_.first(); // its destructors may have changed the list
        } else {
            one = one->next_task;
        }
    }
}

/// Frames have ended what they own. Eager operations and streams may live elsewhere: nothing of
/// them outlives the run either.
void event_loop::cancel_detached_operations() noexcept {
    const bool was_ending = std::exchange(ending_, true);
    while (submissions_.in_flight() > 0 || submissions_.has_queued()) {
        cancel_everything(UINT32_MAX);
        const uring::timespec soon{0, 1'000'000};
        ring_.enter(1, &soon, 0);
        reap();
        cancellations_.retry();
        submissions_.cancel_queued();
    }
    ending_ = was_ending;
}

} // namespace coil::detail
