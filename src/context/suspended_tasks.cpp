#include "suspended_tasks.hpp"

#include <coil/context/detail/event_loop.hpp>

namespace coil::detail {

suspended_tasks::suspended_tasks(event_loop& loop) : loop_(loop), leaves_(loop) {
    index_waits();
    owners_.add(loop_.tasks_, [this](promise_base& top, const promise_base& leaf,
                                     const void* address, const promise_base& root) {
        if (!is_suspended(leaf, address, root)) {
            unproven_.insert(&top);
        }
    });
    frame_owners::for_each_child(
        loop_.tasks_, [this](const listed_children& group, promise_base& child) {
            if (unproven_.contains(&child)) {
                const promise_base* const owner = owners_.owner_of(&group);
                is_an_owner_unknown_ = is_an_owner_unknown_ || owner == nullptr;
                owners_of_unproven_.insert(owner);
            }
        });
}

void suspended_tasks::index_waits() {
    loop_.ready_.visit([this](std::coroutine_handle<> h) { ready_.insert(h.address()); });
    for (const listed_children* group = loop_.tasks_.nurseries(); group != nullptr;
         group = group->next_in_list()) {
        if (const promise_base* const by = group->awaiting_task()) {
            joining_.insert(by);
        }
    }
    away_cursor().visit(loop_.tasks_.away(), [this](const promise_base* root) {
        if (root != nullptr) {
            away_.insert(root);
        }
        return true;
    });
}

bool suspended_tasks::is_suspended(const promise_base& leaf, const void* address,
                                   const promise_base& root) const {
    return ready_.contains(address) || joining_.contains(&leaf) || away_.contains(&root) ||
           leaves_.is_pending(address);
}

bool suspended_tasks::contain(const promise_base& task) const {
    return !is_an_owner_unknown_ && contain_apart_from_unknown_owners(task);
}

bool suspended_tasks::contain_apart_from_unknown_owners(const promise_base& task) const {
    if (unproven_.contains(const_cast<promise_base*>(&task)) ||
        owners_of_unproven_.contains(&task)) {
        return false;
    }
    const destructor_waits::nursery_scope* one = loop_.waiting_destructors().nurseries();
    while (one != nullptr && owners_.owner_of(&one->which()) != &task) {
        one = one->earlier();
    }
    return one == nullptr;
}

/// It owns the nursery that is being destroyed. Or it is the only one that is not suspended, and
/// the loop has resumed one of its coroutines: so it is not code of another library that runs.
promise_base* suspended_tasks::running_task(const void* resumed) const {
    if (const auto* const left = loop_.waiting_destructors().outermost_nursery()) {
        if (promise_base* const task = owners_.owner_of(&left->which())) {
            return task;
        }
    }
    if (unproven_.size() != 1 || owners_.root_of(resumed) != *unproven_.begin()) {
        return nullptr;
    }
    return owners_.owner_of_root(*unproven_.begin());
}

} // namespace coil::detail
