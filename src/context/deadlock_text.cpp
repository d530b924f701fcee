// Alone in this source: coil::minimal replaces it.

#include "deadlock.hpp"
#include "task_snapshot.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

namespace coil::detail {

namespace {

/// Whether one of these tasks, or of their children, can continue without another task.
bool can_continue(const record_list<task_record>& tasks) noexcept {
    using what = wait_record::what;
    for (const task_record& task : tasks) {
        switch (task.wait.kind) {
        case what::ready:
        case what::operation:
        case what::queued:
        case what::stream:
        case what::sleep:
        case what::elsewhere:
            return true;
        default:
            if (can_continue(task.children)) {
                return true;
            }
        }
    }
    return false;
}
bool can_continue(const context_snapshot& context) noexcept {
    bool can = context.arriving > 0 || can_continue(context.tasks);
    for (const group_record& group : context.groups) {
        can = can || can_continue(group.children);
    }
    return can;
}

} // namespace

std::string describe_deadlock(std::span<event_loop* const> loops, bool has_others) {
    std::string text(deadlock_sentence);
    try {
        constexpr std::size_t at_most = 100;
        std::vector<context_snapshot> contexts;
        for (event_loop* const loop : loops) {
            contexts.push_back(take_snapshot(*loop, at_most));
        }
        if (has_others && std::ranges::any_of(contexts, [](const context_snapshot& one) {
                return can_continue(one);
            })) {
            return {};
        }
        text += to_text(contexts);
    } catch (const std::bad_alloc&) {
        text += "(no memory to list them)\n";
    }
    return text;
}

} // namespace coil::detail
