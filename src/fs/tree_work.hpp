#pragma once

#include "lease_wait.hpp"
#include "syscalls.hpp"

#include <coil/compose/scope.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>

namespace coil::fs::detail {

/// The time limit of one job of the pool. It bounds how long other jobs wait for the thread, and
/// how long a caller waits for the job to end.
class slice {
public:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::microseconds length{500};

    explicit slice(inplace_stop_token token) noexcept : token_(token) {}

    [[nodiscard]] bool is_over() const noexcept {
        return pauses_ || clock::now() >= end_ || token_.stop_requested();
    }
    /// Ends the slice. The worker waits for a lease before its next one.
    void pause() const noexcept { pauses_ = true; }
    [[nodiscard]] bool pauses() const noexcept { return pauses_; }

private:
    inplace_stop_token token_;
    mutable bool pauses_ = false;
    /// In a simulated world a slice has no limit: its time does not advance while a job runs.
    clock::time_point end_ = sys::is_in_world() ? clock::time_point::max() : clock::now() + length;
};

/// Whether a job that has read `bytes` of directory entries into a buffer should leave the rest of
/// the directory to a later slice. Such a directory has to be opened again after everything below
/// it has been processed. So if it has probably been read to its end, the job makes one more call
/// although the slice is over, unless it was over before that buffer was read (`was_over`).
[[nodiscard]] inline bool leaves_rest(int bytes, std::size_t buffer_size, bool was_over,
                                      const slice& time) noexcept {
    const bool is_at_end = static_cast<std::size_t>(bytes) <= buffer_size / 2;
    return time.is_over() && (was_over || !is_at_end);
}

/// A job leaves the rest of a directory when it has found this many subdirectories, so that the
/// list of work does not grow with the width of a tree.
constexpr std::size_t enough_directories = 512;

/// Work on a tree, executed by a few concurrent jobs of the blocking pool. Each job is a slice that
/// takes directories from a list. Between two slices its coroutine runs on the context, where it is
/// cancelled, reports progress and starts further workers.
class tree_work {
public:
    /// The maximum number of jobs. More jobs than processors only contend for the locks of
    /// directories and of the journal; see docs/guide/files.md.
    explicit tree_work(unsigned max_workers = usual_workers()) noexcept
        : max_workers_(max_workers) {}
    tree_work(const tree_work&) = delete;
    tree_work& operator=(const tree_work&) = delete;

    /// On the context, while there may be work: starts one more worker unless there are enough.
    void add_worker(scope& worker_scope);
    [[nodiscard]] unsigned workers() const noexcept {
        return workers_.load(std::memory_order_relaxed);
    }
    /// Pool threads: whether there is more work than workers.
    [[nodiscard]] bool wants_help() const noexcept {
        return workers() < max_workers_.load(std::memory_order_relaxed) && has_much();
    }
    /// Pool threads, when descriptors have run out and this job has put back its item. Returns true
    /// if the job should end to release its descriptors; from then on a single job does all the
    /// work. Returns false if it is the only one.
    bool gives_way() noexcept {
        max_workers_.store(1, std::memory_order_relaxed);
        if (workers() <= 1) {
            return false;
        }
        gave_way_.store(true, std::memory_order_relaxed);
        return true;
    }

    /// Any thread: records an error (-errno) and ends the work; the first error counts. Returns
    /// true if this was the first; the caller may then record where it occurred, to be read after
    /// all workers have ended.
    bool fail(int error) noexcept {
        int none = 0;
        return error_.compare_exchange_strong(none, error, std::memory_order_acq_rel);
    }
    /// Pool threads, when another process holds a lease on a file and this job is about to put back
    /// its item. Ends the slice, and returns true unless the work has waited long enough.
    [[nodiscard]] bool waits_for_lease(const slice& time) const noexcept {
        time.pause();
        return !leases_.is_over();
    }
    [[nodiscard]] int error() const noexcept { return error_.load(std::memory_order_acquire); }

    [[nodiscard]] static unsigned usual_workers() noexcept;

    friend task<> do_tree_work(tree_work& work);

protected:
    ~tree_work() = default;

private:
    /// On a thread of the pool: works until the slice ends or help is wanted. Returns false if
    /// there is no work for this worker.
    virtual bool work(const slice& time) = 0;
    /// Any thread: whether there is work for another worker.
    [[nodiscard]] virtual bool has_much() const noexcept = 0;
    /// After all workers have ended: whether the work is complete.
    [[nodiscard]] virtual bool is_done() const noexcept = 0;
    /// On the context: called after each slice.
    virtual void after_slice() {}

    static task<> worker(tree_work& self, scope& worker_scope);

    std::atomic<unsigned> max_workers_;
    std::atomic<bool> gave_way_{false};
    std::atomic<unsigned> workers_{0}; // modified on the context
    std::atomic<int> error_{0};
    lease_wait leases_;
};

/// Executes all of the work. If the awaiting task is asked to stop before it is complete, error()
/// is -ECANCELED.
task<> do_tree_work(tree_work& work);

} // namespace coil::fs::detail
