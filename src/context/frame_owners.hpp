#pragma once

#include <coil/context/detail/listed_children.hpp>
#include <coil/context/detail/task_list.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/promise_base.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace coil::detail {

/// Finds the top-level task that owns an object: the task in one of whose frames the object lies.
/// It knows the frames of all tasks in a context's lists and of the children of its nurseries. A
/// snapshot, valid until a coroutine runs or a frame is destroyed. Owner thread.
class frame_owners {
public:
    /// The top-level task in one of whose frames an object lies, or null if unknown.
    [[nodiscard]] promise_base* owner_of(const void* object) const;
    /// The top-level task that a root belongs to. A child of a scope belongs to the owner of the
    /// scope. Null if unknown.
    [[nodiscard]] promise_base* owner_of_root(promise_base* root) const;

    /// Adds the frames of all tasks of `tasks`. Calls `f(top, leaf, address, root)` for each leaf
    /// of their trees: `top` is a task of the lists or a child of a nursery, `address` the leaf's
    /// frame, and `root` its nearest root.
    template <class Function>
    void add(task_list& tasks, Function f) {
        add_list(tasks.listed().first(), f);
        add_list(tasks.held_back().first(), f);
        for_each_child(tasks,
                       [&](const listed_children&, promise_base& child) { add_tree(child, f); });
    }
    /// Calls `f(nursery, child)` for the children of all nurseries of `tasks`.
    template <class Function>
    static void for_each_child(task_list& tasks, Function f) {
        std::vector<promise_base*> children;
        for (listed_children* group = tasks.nurseries(); group != nullptr;
             group = group->next_in_list()) {
            children.clear();
            collected_children visitor(children);
            owned<children_cursor> from_the_first;
            group->visit_children(visitor, from_the_first);
            for (promise_base* child : children) {
                f(*group, *child);
            }
        }
    }

private:
    class collected_children final : public child_visitor {
    public:
        explicit collected_children(std::vector<promise_base*>& to) noexcept : to_(to) {}
        void visit(promise_base& child) override { to_.push_back(&child); }

    private:
        std::vector<promise_base*>& to_;
    };
    struct frame {
        std::uintptr_t end;
        promise_base* root; // the listed task, or child of a nursery, that the frame belongs to
    };

    template <class Function>
    void add_list(promise_base* first, Function& f) {
        for (promise_base* task = first; task != nullptr; task = next_listed(*task)) {
            if (!task->owner().is_marker()) {
                add_tree(*task, f);
            }
        }
    }
    template <class Function>
    void add_tree(promise_base& top, Function& f) {
        std::vector<promise_base*> roots{&top};
        collected_children visitor(roots);
        while (!roots.empty()) {
            promise_base& root = *roots.back();
            roots.pop_back();
            promise_base* leaf = &root;
            const void* address = frame_of(*leaf);
            add_frame(address, top);
            while (leaf->nested_below() == nullptr && leaf->task_below() != nullptr) {
                leaf = leaf->task_below();
                address = frame_of(*leaf);
                add_frame(address, top);
            }
            if (nested_await* const nested = leaf->nested_below()) {
                nested->visit_below(visitor);
            } else {
                f(top, *leaf, address, root);
            }
        }
    }
    void add_frame(const void* address, promise_base& top);

    std::map<std::uintptr_t, frame> frames_; // by their addresses
};

} // namespace coil::detail
