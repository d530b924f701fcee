#pragma once

#include <coil/core/atomics.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

/// A request to stop, which any thread may make of a loop, and as often as it likes; it travels as
/// a node in the loop's inbox. One word holds whether that node is under way, and whether it still
/// means something when it arrives.
template <class Atomics = std_atomics>
class basic_stop_request {
public:
    /// Any thread. True when the caller must post the node. Whoever gets false is done: it touches
    /// nothing of the loop any more, which may be gone as soon as the node has arrived.
    [[nodiscard]] bool make() noexcept {
        return (word_.fetch_or(posted | counts, std::memory_order_acq_rel) & posted) == 0;
    }
    /// Owner: the node has arrived, and may be posted again. Whether the loop is to stop.
    [[nodiscard]] bool arrived() noexcept {
        return (word_.exchange(0, std::memory_order_acq_rel) & counts) != 0;
    }
    /// What is under way has come too late.
    void forget() noexcept { word_.fetch_and(posted, std::memory_order_relaxed); }

private:
    static constexpr unsigned posted = 1;
    static constexpr unsigned counts = 2;

    typename Atomics::template atomic<unsigned> word_{0};
};

/// Whether a loop stays although there is nothing to do.
///
/// Who lets go of it writes the word and then looks whether the owner sleeps; the owner says that
/// it sleeps and then looks at the word. In the one order that sequential consistency gives to all
/// four, at least one of them sees the other.
template <class Atomics = std_atomics>
class basic_hold {
public:
    void hold() noexcept { held_.store(true); }
    /// Any thread. True when the owner sleeps and the caller must wake it.
    template <class Inbox>
    [[nodiscard]] bool release(Inbox& inbox) noexcept {
        held_.store(false);
        return inbox.unpark_for_signal();
    }
    [[nodiscard]] bool held() const noexcept { return held_.load(); }

private:
    typename Atomics::template atomic<bool> held_{false};
};

/// The calls of wake() that a loop has to see before it may go: a thread that ended a sleep is
/// still on its way to that call. Owner only.
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

using stop_request = basic_stop_request<>;
using loop_hold = basic_hold<>;

} // namespace coil::detail
