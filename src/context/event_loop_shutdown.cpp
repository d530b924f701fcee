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
        end_what_no_frame_owns();
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
    hold_back_roots();
    if (destroy_free_roots()) {
        return shutdown_state::goes_on;
    }
    if (!held_back_.empty()) {
        return shutdown_state::waits;
    }
    functions_.call_all(*this);
    return inbox_.empty() && roots_.empty() && functions_.empty() ? shutdown_state::over
                                                                  : shutdown_state::goes_on;
}

void event_loop::wait_in_shutdown(int& waited) noexcept {
    constexpr int often = 32; // then a message hardly comes any more: look less often
    refuse_unwanted();
    visit_others();
    if (inbox_.empty()) {
        wait_for_mail(++waited > often);
    } else {
        deliver_inbox();
    }
    lose_patience(waited);
}

/// Where the tree is not known, any of the roots may hold what is elsewhere, and what that waits
/// for may be the destructor of another: now and then one is destroyed, and waits in its destructor
/// if it must.
void event_loop::lose_patience(int waited) noexcept {
    constexpr int patience_in_turns = 16; // of a millisecond
    if (tree_unknown_ && !held_back_.empty() && waited % patience_in_turns == 0) {
        promise_base& newest = *held_back_.first();
        roots_.move_back(newest);
        destroy_root(newest);
    }
}

void event_loop::abandon_guests() noexcept {
    deliver_inbox();
    hold_back_roots();
    promise_base* root = roots_.first();
    while (root != nullptr) {
        if (root->observer().is_guest) {
            destroy_root(*root);
            root = roots_.first(); // its destructors may have changed the list
        } else {
            root = root->next_root;
        }
    }
}

/// Asks everything that is elsewhere to end, and parts the roots that must wait for it from the
/// others.
void event_loop::hold_back_roots() noexcept {
    while (!held_back_.empty()) {
        roots_.move_back(*held_back_.first());
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
        } else if (root->root_link != nullptr && !is_adrift(*root)) {
            roots_.move_to(held_back_, *root);
        }
    }
    if (tree_unknown_) {
        for (promise_base* root = roots_.first(); root != nullptr;) {
            promise_base& one = *root;
            root = one.next_root;
            if (!one.observer().is_guest) {
                roots_.move_to(held_back_, one);
            }
        }
    }
}

/// False when there was none. Those that others wait for may have what is elsewhere as well when
/// the tree is not known; then their destructor waits for it.
bool event_loop::destroy_free_roots() noexcept {
    const bool any = !roots_.empty();
    while (!roots_.empty()) {
        clear_ready();
        destroy_root(*roots_.first());
    }
    return any;
}

void event_loop::destroy_root(promise_base& root) noexcept {
    root_list::remove(root);
    root.root_link = nullptr; // it is in no list while its frame is being destroyed
    root.observer().abandoned(root);
}

/// Nothing that is ready runs any more.
void event_loop::clear_ready() noexcept {
    ready_.clear();
    functions_.lost_turn();
}

bool event_loop::has_root(const promise_base& root) const noexcept {
    for (const promise_base* first : {roots_.first(), held_back_.first()}) {
        for (const promise_base* one = first; one != nullptr; one = one->next_root) {
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
            above = above->observer().awaiting_root();
        }
        return above == &root;
    };
    promise_base* one = roots_.first();
    while (one != nullptr) {
        if (one->observer().is_guest && is_in_tree(*one)) {
            destroy_root(*one);
            one = roots_.first(); // its destructors may have changed the list
        } else {
            one = one->next_root;
        }
    }
}

/// Frames have ended what they own. Eager operations and streams may live elsewhere: nothing of
/// them outlives the run either.
void event_loop::end_what_no_frame_owns() noexcept {
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
