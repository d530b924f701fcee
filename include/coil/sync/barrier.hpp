#pragma once

#include <coil/sync/detail/barrier_core.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil {

/// std::barrier for coroutines: a number of participants wait for each other, phase after phase.
///
///     coil::barrier step{workers};
///     // each worker:
///     for (...) {
///         compute(part);
///         co_await step.arrive_and_wait();
///     }
///
/// The last participant to arrive in a phase runs `completion`; then all waiters resume.
///
/// Threading: all members may be called from any context and any thread. A waiter resumes on its
/// own context.
///
/// Cancellation: if the waiting task is asked to stop, wait() and arrive_and_wait() throw
/// std::system_error with std::errc::operation_canceled, unless the phase was completed first; if
/// the stop was requested before the await, they throw in any case. The arrival still counts, and
/// the next phase expects the participant again: a participant that leaves calls arrive_and_drop().
///
/// Errors: more arrivals than the phase expects, or a negative number of participants, terminate
/// the program with a message.
template <class CompletionFunction = detail::no_completion>
class barrier {
    static_assert(std::is_invocable_v<CompletionFunction&>,
                  "a barrier's completion is called without arguments");
    static_assert(!std::is_invocable_v<CompletionFunction&> ||
                      std::is_nothrow_invocable_v<CompletionFunction&>,
                  "a barrier's completion must not throw: declare it noexcept");
    using core = detail::basic_barrier<detail::barrier_entry, detail::sync_waiter>;

public:
    /// Identifies the phase in which arrive() was called.
    class arrival_token {
    public:
        arrival_token(arrival_token&&) noexcept = default;
        arrival_token& operator=(arrival_token&&) noexcept = default;
        ~arrival_token() = default;

    private:
        friend class barrier;
        explicit arrival_token(std::uint64_t phase) noexcept : phase_(phase) {}
        std::uint64_t phase_;
    };

    explicit barrier(std::ptrdiff_t expected, CompletionFunction f = CompletionFunction())
        : core_(expected), completion_(std::move(f)) {
        if (expected < 0) [[unlikely]] {
            detail::end_with_misuse("a barrier must be constructed with 0 or more.");
        }
    }
    barrier() COIL_DELETE_COPY("pass the number of participants: barrier step(3)");
    barrier(const barrier&) = delete;
    barrier& operator=(const barrier&) = delete;
    ~barrier() = default;

    [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept {
        return std::numeric_limits<std::ptrdiff_t>::max();
    }

    /// Arrives without waiting. Pass the token to wait().
    [[nodiscard]] arrival_token arrive(std::ptrdiff_t n = 1) noexcept {
        const std::uint64_t phase = core_.phase();
        count(n);
        return arrival_token(phase);
    }
    auto wait(arrival_token&& arrived) noexcept { return awaitable(*this, arrived.phase_, false); }
    /// Arrives when awaited, then waits for the phase to be completed.
    auto arrive_and_wait() noexcept { return awaitable(*this, 0, true); }
    /// Arrives in this phase and leaves the barrier: later phases expect one participant fewer.
    void arrive_and_drop() noexcept {
        core_.expect_one_less();
        count(1);
    }

private:
    class awaiter : public detail::sync_awaiter<awaiter, detail::barrier_entry> {
    public:
        awaiter(barrier& source, std::uint64_t phase, bool arrives) noexcept
            : source_(source), arrives_(arrives) {
            this->phase = phase;
        }
        ~awaiter() { this->end_wait(); }

        template <class P>
        bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
            if (arrives_) {
                this->phase = source_.core_.phase();
                source_.count(1);
            }
            return detail::sync_awaiter<awaiter, detail::barrier_entry>::await_suspend(coroutine);
        }
        void await_resume() { this->throw_if_cancelled("barrier"); }

    private:
        friend class detail::sync_awaiter<awaiter, detail::barrier_entry>;
        static constexpr detail::waited_object waits_for = detail::waited_object::barrier;
        static constexpr bool gives_back = false;

        [[nodiscard]] bool take_now() noexcept { return source_.core_.is_over(this->phase); }
        [[nodiscard]] core& queue() noexcept { return source_.core_; }
        void give_back() noexcept {}

        barrier& source_;
        bool arrives_;
    };

    class [[nodiscard("did you forget to co_await?")]] awaitable {
    public:
        awaitable(barrier& source, std::uint64_t phase, bool arrives) noexcept
            : source_(&source), phase_(phase), arrives_(arrives) {}
        [[nodiscard]] awaiter operator co_await() const noexcept {
            return awaiter(*source_, phase_, arrives_);
        }

    private:
        barrier* source_;
        std::uint64_t phase_;
        bool arrives_;
    };

    void count(std::ptrdiff_t n) noexcept {
        const std::ptrdiff_t left = n > 0 ? core_.arrive(n) : -1;
        if (left < 0) [[unlikely]] {
            detail::end_with_misuse(
                "more participants have arrived at a barrier than it expects in "
                "this phase: arrive(n) takes 1 to as many as are still missing, "
                "and a participant that has dropped out does not arrive again.");
        }
        if (left == 0) {
            completion_();
            core_.complete();
        }
    }

    core core_;
    [[no_unique_address]] CompletionFunction completion_;
};

} // namespace coil
