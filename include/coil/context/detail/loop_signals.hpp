#pragma once

#include <coil/core/detail/atomics.hpp>
#include <coil/core/detail/queue.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

/// A stop request to a loop, which any thread may make any number of times. It is delivered as a
/// node through the loop's inbox. One word holds whether that node is on its way, and whether it
/// still counts on arrival.
template <class Atomics = std_atomics>
class basic_stop_request {
public:
    /// May be called from any thread. If true, the caller must post the node. If false, the caller
    /// must no longer access the loop, which may be destroyed once the node has arrived.
    [[nodiscard]] bool make() noexcept {
        return (word_.fetch_or(posted | counts, std::memory_order_acq_rel) & posted) == 0;
    }
    /// Owner only: the node has arrived and may be posted again. Returns whether the loop is to
    /// stop.
    [[nodiscard]] bool arrived() noexcept {
        return (word_.exchange(0, std::memory_order_acq_rel) & counts) != 0;
    }
    /// Ignores a request that is still on its way.
    void forget() noexcept { word_.fetch_and(posted, std::memory_order_relaxed); }

private:
    static constexpr unsigned posted = 1;
    static constexpr unsigned counts = 2;

    typename Atomics::template atomic<unsigned> word_{0};
};

/// Whether a loop keeps running without work.
///
/// Releasing it writes the word and then checks whether the owner sleeps; the owner announces its
/// sleep and then checks the word. All four accesses are sequentially consistent, so at least one
/// side sees the other.
template <class Atomics = std_atomics>
class basic_work_guard {
public:
    void acquire() noexcept { held_.store(true); }
    /// May be called from any thread. Returns true if the owner sleeps and the caller must wake it.
    template <class Inbox>
    [[nodiscard]] bool release(Inbox& inbox) noexcept {
        held_.store(false);
        return inbox.unpark_for_signal();
    }
    [[nodiscard]] bool held() const noexcept { return held_.load(); }

private:
    typename Atomics::template atomic<bool> held_{false};
};

/// Counts the wake-up calls that a loop must receive before it may be destroyed: a thread that has
/// ended a sleep may not have made its call yet. Owner only.
class wake_account {
public:
    void expect() noexcept { ++due_; }
    void saw(std::uint64_t calls) noexcept { seen_ += calls; }
    [[nodiscard]] bool untouched() const noexcept { return due_ == 0; }
    [[nodiscard]] bool settled() const noexcept { return seen_ >= due_; }
    void clear() noexcept { due_ = seen_ = 0; }

private:
    std::uint64_t due_ = 0;
    std::uint64_t seen_ = 0;
};

/// Counts the beginnings and ends of a loop's waits that only a message can end, so it is odd
/// during such a wait. The loop counts the end of the wait before it empties its inbox; other
/// threads read the inbox before this counter.
class lonely_wait_count {
public:
    /// Owner only. No effect during a wait.
    void begin() noexcept {
        count_.store(count_.load(std::memory_order_relaxed) | 1U, std::memory_order_seq_cst);
    }
    /// Owner only. Returns whether there was a wait.
    bool end() noexcept {
        if (!is_wait(count_.load(std::memory_order_relaxed))) [[likely]] {
            return false;
        }
        count_.fetch_add(1, std::memory_order_seq_cst);
        return true;
    }
    /// Any thread.
    [[nodiscard]] std::uint32_t value() const noexcept {
        return count_.load(std::memory_order_seq_cst);
    }
    /// Whether a value was read during a wait.
    [[nodiscard]] static bool is_wait(std::uint32_t value) noexcept { return value % 2 != 0; }

private:
    std::atomic<std::uint32_t> count_{0};
};

using stop_request = basic_stop_request<>;
using work_guard = basic_work_guard<>;

/// When a loop checks whether its tasks wait for ever. Owner only.
struct deadlock_checks {
    bool is_reported = false;
    std::uint32_t waits = 0; // the waits so far during which there were tasks
    // While a wait lasts, it is checked again at this time, at intervals that double.
    std::int64_t due_ns = 0;      // 0: not known yet
    std::int64_t interval_ns = 0; // 0: there is no such wait
};

/// The variables that other threads write to signal a loop, on a separate cache line.
struct loop_signals {
    stop_request stop;
    queue_node stop_node; // the message of `stop`
    work_guard guard;
    /// A service has delivered messages that are for the next run.
    std::atomic<bool> delivered_idle{false};
    lonely_wait_count lonely_waits;
    deadlock_checks checks;
};

} // namespace coil::detail
