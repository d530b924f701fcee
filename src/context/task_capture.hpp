#pragma once

#include "leaf_search.hpp"
#include "task_snapshot.hpp"

#include <coil/core/detail/promise_base.hpp>

#include <cstddef>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace coil::detail {

/// Takes a snapshot of a loop's tasks. Reads only; runs no code of the program. Used on the loop's
/// thread, or on another one that has claimed the loop while it does not run.
class task_capture {
public:
    task_capture(event_loop& loop, std::size_t limit) noexcept
        : loop_(loop), leaves_(loop), limit_(limit) {}

    [[nodiscard]] context_snapshot take();

    // Claims and releases a loop that does not run, see listed_loop.
    [[nodiscard]] static bool claim(event_loop& loop) noexcept;
    static void release(event_loop& loop) noexcept;

private:
    /// Adds the children of an await or a scope to a record.
    class children_of final : public child_visitor {
    public:
        children_of(task_capture& capture, int level, std::vector<task_record>& to) noexcept
            : capture_(capture), level_(level), to_(to) {}

        void visit(promise_base& child) override { capture_.add(child, level_, to_); }

    private:
        task_capture& capture_;
        int level_;
        std::vector<task_record>& to_;
    };

    /// Deeper trees are truncated.
    static constexpr int most_levels = 64;
    static constexpr std::size_t longest_chain = 256;

    void index();
    void add_list(promise_base* first, std::vector<task_record>& to);
    void add(promise_base& root, int level, std::vector<task_record>& to);
    void describe_leaf(promise_base& leaf, const void* frame, promise_base& root,
                       wait_record& wait);

    event_loop& loop_;
    leaf_search leaves_;
    std::size_t limit_;
    bool cut_ = false;
    std::unordered_set<const void*> ready_; // frames
    std::unordered_map<const promise_base*, const void*> joins_;
    std::unordered_set<const promise_base*> away_;
};

} // namespace coil::detail
