#include "suspended_tasks.hpp"

#include <coil/context/detail/event_loop.hpp>

namespace coil::detail {

suspended_tasks::suspended_tasks(event_loop& loop) : loop_(loop), leaves_(loop) {
    index_waits();
    owners_.add(loop_.tasks_, [this](const promise_base& top, const promise_base& leaf,
                                     const void* address, const promise_base& root) {
        if (!is_suspended(leaf, address, root)) {
            unproven_.insert(&top);
        }
    });
    frame_owners::for_each_child(
        loop_.tasks_, [this](const listed_children& group, const promise_base& child) {
            if (!unproven_.contains(&child)) {
                return;
            }
            if (const promise_base* const owner = owners_.owner_of(&group)) {
                owners_of_unproven_.insert(owner);
            } else {
                unowned_.push_back(&group);
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
    return unowned_.empty() && contain_apart_from_unowned(task);
}

bool suspended_tasks::contain_if_below(const promise_base& task) const {
    if (unowned_.empty() || unproven_.size() > 1) {
        return contain(task);
    }
    for (const listed_children* const group : unowned_) {
        if (is_joined_by(*group, task)) {
            return false;
        }
    }
    return contain_apart_from_unowned(task);
}

bool suspended_tasks::is_joined_by(const listed_children& group, const promise_base& task) const {
    const promise_base* const joining = group.awaiting_task();
    return joining != nullptr && owners_.owner_of(joining) == &task;
}

bool suspended_tasks::contain_apart_from_unowned(const promise_base& task) const {
    if (unproven_.contains(&task) || owners_of_unproven_.contains(&task)) {
        return false;
    }
    const destructor_waits::nursery_scope* one = loop_.waiting_destructors().nurseries();
    while (one != nullptr && owners_.owner_of(&one->which()) != &task) {
        one = one->earlier();
    }
    return one == nullptr;
}

promise_base* suspended_tasks::owner_of_first_left() const {
    const auto* const first = loop_.waiting_destructors().first_nursery_left();
    return first != nullptr ? owners_.owner_of(&first->which()) : nullptr;
}

} // namespace coil::detail
