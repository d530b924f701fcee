#pragma once

#include "calls.hpp"

#include <coil/compose/scope.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>

#include <atomic>
#include <chrono>

namespace coil::fs::detail {

/// The time that a job of the pool may take, so that nobody waits long for its thread or its end.
class slice {
public:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::microseconds length{500};

    explicit slice(inplace_stop_token token) noexcept : token_(token) {}

    [[nodiscard]] bool is_over() const noexcept {
        return clock::now() >= end_ || token_.stop_requested();
    }
    [[nodiscard]] bool stop_requested() const noexcept { return token_.stop_requested(); }

private:
    inplace_stop_token token_;
    /// In a world, where time passes only when nobody works: it takes as long as it takes.
    clock::time_point end_ = sys::is_in_world() ? clock::time_point::max() : clock::now() + length;
};

/// Work on a tree, done by a few jobs of the blocking pool at a time. Each is a slice that takes
/// from a list of directories; between two of them its coroutine has been on the context, where it
/// is cancelled, tells of progress and lets others join in.
class tree_work {
public:
    /// Jobs at most. More than processors only fight for the locks of directories and of the
    /// journal; see docs/guide/files.md.
    explicit tree_work(unsigned most_workers = usual_workers()) noexcept
        : most_workers_(most_workers) {}
    tree_work(const tree_work&) = delete;
    tree_work& operator=(const tree_work&) = delete;

    /// On the context, while there may be something to do: lets one more worker begin, unless there
    /// are enough.
    void add_worker(scope& crew);
    [[nodiscard]] unsigned workers() const noexcept {
        return workers_.load(std::memory_order_relaxed);
    }
    /// Pool threads: there is more to do than those do who are at it.
    [[nodiscard]] bool wants_help() const noexcept {
        return workers() < most_workers_.load(std::memory_order_relaxed) && has_much();
    }
    /// Pool threads, when there are no descriptors left and this job has put back what it was at:
    /// true: it ends, so that the others have what it held. From then on one does all of it. False:
    /// it is the only one.
    bool gives_way() noexcept {
        most_workers_.store(1, std::memory_order_relaxed);
        if (workers() <= 1) {
            return false;
        }
        gave_way_.store(true, std::memory_order_relaxed);
        return true;
    }

    /// Any thread: −errno, of which the first counts; it ends the work. True: this was the first,
    /// and its caller may say where it was, for those who look when no worker is left.
    bool fail(int error) noexcept {
        int none = 0;
        return error_.compare_exchange_strong(none, error, std::memory_order_acq_rel);
    }
    [[nodiscard]] int error() const noexcept { return error_.load(std::memory_order_acquire); }

    [[nodiscard]] static unsigned usual_workers() noexcept;

    friend task<> do_tree_work(tree_work& work);

protected:
    ~tree_work() = default;

private:
    /// On a thread of the pool: works until the slice is over, or help is wanted. False: there is
    /// nothing to do for this worker.
    virtual bool work(const slice& time) = 0;
    /// Any thread: whether another worker finds something to do.
    [[nodiscard]] virtual bool has_much() const noexcept = 0;
    /// When no worker is left: whether all has been done.
    [[nodiscard]] virtual bool is_done() const noexcept = 0;
    /// On the context: after each slice.
    virtual void after_slice() {}

    static task<> worker(tree_work& self, scope& crew);

    std::atomic<unsigned> most_workers_;
    std::atomic<bool> gave_way_{false};
    std::atomic<unsigned> workers_{0}; // written on the context
    std::atomic<int> error_{0};
};

/// Does all of it. When the awaiting task is asked to stop before, error() is -ECANCELED in the
/// end.
task<> do_tree_work(tree_work& work);

} // namespace coil::fs::detail
