#pragma once

#include "leaf_search.hpp"
#include "task_snapshot.hpp"

#include <coil/core/detail/promise_base.hpp>

#include <cstddef>
#include <unordered_map>
#include <unordered_set>

namespace coil::detail {

/// Takes a snapshot of a loop's tasks. Reads only; runs no code of the program. On the loop's
/// thread, or while the loop does not run and this has claimed it.
class task_capture {
public:
    task_capture(event_loop& loop, std::size_t limit) noexcept
        : loop_(loop), leaves_(loop), limit_(limit) {}

    [[nodiscard]] context_snapshot take();

    // The use of a loop that does not run, see listed_loop.
    [[nodiscard]] static bool claim(event_loop& loop) noexcept;
    static void release(event_loop& loop) noexcept;

private:
    class children_of;

    /// Deeper trees are cut.
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
