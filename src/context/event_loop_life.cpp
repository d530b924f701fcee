// The beginning and the end of a loop.

#include "event_loop_enter.hpp"

#include <coil/context/event_loop.hpp>

#include <cstdint>
#include <utility>

namespace coil::detail {

event_loop::event_loop(io_context& context, const io_context_options& options)
    : ring_(options, metrics_), submissions_(ring_, options.max_in_flight),
      cancellations_(ring_, metrics_), context_(context), options_(options),
      parker_(ring_, inbox_, meter_, metrics_, options.idle) {}

event_loop::~event_loop() {
    leave_list();
    discard_messages();
    event_loop* const outer = std::exchange(current_loop, this);
    ring_.close();
    deliver_inbox(); // from those who found the ring still open
    ending_ = true;
    functions_.call_all(*this);
    timers_.clear(); // of eager operations that have ended
    current_loop = outer;
}

/// Nothing is in flight, but tasks that never started have parameters whose destructors may want
/// the context.
void event_loop::discard_messages() noexcept {
    if (!begin_service()) {
        end_with_misuse("a context that runs is to discard what was posted to it.");
    }
    event_loop* const outer = std::exchange(current_loop, this);
    std::swap(task_list::removed_on_this_thread, tasks_removed_);
    begin_own_run();
    shut_down();
    stop_requested_ = false; // by a destructor: there is nothing left that it could stop
    publish();
    std::swap(task_list::removed_on_this_thread, tasks_removed_);
    current_loop = outer;
    end_service();
}

/// What the others see is as old as the last turn. A task that gives out work sees its own.
std::uint64_t event_loop::load() const noexcept {
    const std::uint64_t balance = on_owner_thread() ? tasks() - received_tasks_ : balance_.get();
    // Without an order between the two, what was received may not have been sent yet.
    const auto load =
        static_cast<std::int64_t>(balance + sent_tasks_.load(std::memory_order_relaxed));
    return load > 0 ? static_cast<std::uint64_t>(load) : 0;
}

} // namespace coil::detail
