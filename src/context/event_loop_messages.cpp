// Messages from other threads, and what a loop does while a destructor on its thread waits.

#include "event_loop_enter.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/remote_child.hpp>
#include <coil/context/detail/sim_driver.hpp>

#include <cstdint>
#include <ctime>
#include <utility>

namespace coil::detail {

void event_loop::stop() noexcept {
    if (on_owner_thread()) {
        stop_.request();
        return;
    }
    // Sent through the inbox, so that posting is this thread's last access: the context may be
    // destroyed as soon as run() has returned.
    if (signals_.stop.make()) {
        signals_.stop_node.deliver = [](queue_node&, event_loop& loop) noexcept {
            loop.stop_.deliver(loop.signals_.stop);
        };
        post(signals_.stop_node);
    }
}

void event_loop::hold_work_guard() noexcept { signals_.guard.acquire(); }

void event_loop::release_work_guard() noexcept {
    if (signals_.guard.release(inbox_)) {
        wake();
    }
}

void event_loop::wait_for_messages(bool late) noexcept {
    if (sim_driver* const driver = driver_.get()) {
        if (driver_.is_asleep()) { // called outside of a turn, so the driver must schedule one
            wake_up();
            driver->wake(*this);
        }
        driver->run_others_until_message(*this);
    } else if (!is_running()) { // the ring is entered only in run()
        if (inbox_.empty()) {
            const std::timespec pause{0, late ? 10'000'000 : 100'000};
            ::nanosleep(&pause, nullptr);
        }
    } else if (inbox_.empty()) {
        if (parker_.announce()) {
            const uring::timespec pause{0, late ? 10'000'000 : 1'000'000};
            ring_.enter(1, &pause, 0);
            parker_.unpark();
        } else {
            poll();
        }
        reap();
    }
    deliver_inbox();
}

/// May be called on any thread.
void event_loop::wake() noexcept {
    if (sim_driver* const driver = driver_.get()) [[unlikely]] {
        driver->wake(*this);
        return;
    }
    parker_.descriptor().signal();
}

void event_loop::wake_up() noexcept {
    if (driver_.wake_up(inbox_)) {
        parker_.note_wake_up();
    }
}

void event_loop::stop_watching() noexcept {
    wake_descriptor& descriptor = parker_.descriptor();
    if (descriptor.is_watched()) {
        descriptor.expect_signal();
        descriptor.signal();
    }
    while (descriptor.is_watched()) {
        ring_.enter(1, nullptr, 0);
        reap();
    }
    descriptor.await_signals();
}

void event_loop::refuse_unwanted() noexcept {
    tasks_.refuse_unwanted();
    refuse_unwanted_functions();
}

/// Cancels functions that tasks of other loops have posted here if their results are no longer
/// wanted, even below a shield(). This thread would never call them if it waits for one of these
/// tasks.
void event_loop::refuse_unwanted_functions() noexcept {
    if (!functions_.empty()) {
        functions_.refuse_unwanted(*this);
    }
}

/// Called by a destructor that waits on the thread's own stack during a shutdown, which destroys
/// nothing meanwhile.
void event_loop::abandon_remote_children() noexcept {
    deliver_inbox();
    tasks_.hold_back();
    const auto is_due = [](const promise_base& task) noexcept {
        return task.owner().is_remote_child && !destructor_waits::use_of_task::exists(task);
    };
    while (tasks_.newest(is_due) != nullptr) {
        destructor_waits_.run_aside([this, is_due]() noexcept { tasks_.destroy_if(is_due); });
    }
}

namespace {

/// Whether a root belongs to a task on a context, or is unknown. A context passes on a request to
/// destroy its task; a task on an executor is only asked to stop.
bool is_below_context(const promise_base* root) noexcept {
    while (root != nullptr && root->is_root() && root->owner().bound) {
        root = root->owner().awaiting_root();
    }
    return root == nullptr || !root->is_root() || root->owner().is_on_context();
}

/// Whether `root` waits for the remote child `task`, directly or through tasks of executors. False
/// if a context would pass on the request to destroy a task between them: that request then reaches
/// `task` as well.
bool waits_for(const promise_base& root, const promise_base& task) noexcept {
    const promise_base* above = task.owner().awaiting_root();
    while (above != nullptr && above != &root && above->is_root()) {
        const promise_base* const next = above->owner().awaiting_root();
        if (above->owner().is_on_context() && is_below_context(next)) {
            return false;
        }
        above = next;
    }
    return above == &root;
}

} // namespace

void event_loop::abandon_tree(const promise_base& root) noexcept {
    tasks_.destroy_if([&root](const promise_base& task) noexcept {
        return task.owner().is_remote_child && !destructor_waits::use_of_task::exists(task) &&
               (&task == &root || waits_for(root, task));
    });
}

} // namespace coil::detail
