#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace coil {
class runtime;
} // namespace coil

namespace coil::detail {

class event_loop;

/// Detects tasks that wait for ever, and reports them.
class deadlock_detection {
public:
    /// Called before a wait that only another thread can end. If there is no such thread although
    /// the loop, or another loop of its runtime, has tasks, reports that once, to on_deadlock or to
    /// stderr, and returns true.
    [[nodiscard, gnu::noinline, gnu::cold]] static bool reports(event_loop& loop);
    /// Called before the loop sleeps: when the wait is to be checked again, or INT64_MAX.
    [[nodiscard]] static std::int64_t next_check_ns(event_loop& loop) noexcept;
    /// A run() on the current thread. If it is called by a task of another loop, that loop can do
    /// nothing until it returns.
    class nested_run {
    public:
        explicit nested_run(const event_loop& loop) noexcept;
        nested_run(const nested_run&) = delete;
        nested_run& operator=(const nested_run&) = delete;
        ~nested_run();

        /// Whether the loop runs on the current thread.
        [[nodiscard]] static bool is_here(const event_loop& loop) noexcept;

    private:
        const event_loop& loop_;
        const nested_run* const outer_;
    };

    /// Called repeatedly by a thread in waiting_threads::all() that waits for a task. Returns
    /// whether no thread can run that task: all threads wait, and no running context has tasks. (A
    /// context that has some reports the deadlock itself.)
    [[nodiscard, gnu::cold]] static bool nothing_runs() noexcept;

    /// Any thread. See lonely_wait_count.
    [[nodiscard]] static std::uint32_t lonely_waits(const event_loop& loop) noexcept;

private:
    class census; // of the threads that wait
    [[nodiscard]] static bool check_is_due(event_loop& loop) noexcept;
    [[nodiscard]] static bool all_wait(runtime& all) noexcept;
    [[nodiscard]] static bool finds_one(event_loop& loop);
};

/// The text of the report on these contexts: deadlock_sentence, and their tasks. Empty if the
/// process has other threads (`has_others`) and one of the tasks can continue after all.
/// Replaceable, see src/minimal.
[[nodiscard]] std::string describe_deadlock(std::span<event_loop* const> loops, bool has_others);

inline constexpr std::string_view deadlock_sentence =
    "coil: these tasks wait for ever: no operation is in flight, no timer is armed, and the "
    "process "
    "has no other thread that could wake them\n";

} // namespace coil::detail
