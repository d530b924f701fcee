#pragma once

#include <coil/sync/detail/wait_room.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <atomic>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

struct barrier_entry : sync_waiter {
    std::uint64_t phase = 0;
};

/// The phase changes in the turn: see basic_group. It has changed when the call that ended it
/// returns, so that an arrival that follows is counted in the next: who ends it waits for the turn.
template <class Entry, class Waiter, class Atomics = std_atomics>
class basic_barrier
    : public basic_wait_room<basic_barrier<Entry, Waiter, Atomics>, Waiter, Atomics> {
public:
    using room = basic_wait_room<basic_barrier<Entry, Waiter, Atomics>, Waiter, Atomics>;
    using typename room::told;

    explicit basic_barrier(std::ptrdiff_t expected) noexcept
        : left_(expected), expected_(expected) {}

    /// The phase that the caller, who has yet to arrive, is in.
    [[nodiscard]] std::uint64_t phase() const noexcept {
        return phase_.load(std::memory_order_acquire);
    }
    /// How many are still to arrive in this phase. The caller that gets 0 calls complete(); a
    /// negative number says that more have arrived than take part.
    [[nodiscard]] std::ptrdiff_t arrive(std::ptrdiff_t n) noexcept {
        return left_.fetch_sub(n, std::memory_order_acq_rel) - n;
    }
    void complete() noexcept {
        this->in_turn([this](told& t) { next_phase(t); });
    }
    void expect_one_less() noexcept { expected_.fetch_sub(1, std::memory_order_relaxed); }
    [[nodiscard]] bool is_over(std::uint64_t phase) const noexcept {
        return phase_.load(std::memory_order_acquire) != phase && this->turn_.is_free();
    }

private:
    friend room;

    void arrive(Waiter& w, told& t) noexcept {
        if (static_cast<Entry&>(w).phase == phase_.load(std::memory_order_relaxed)) {
            this->queue_.push(w);
        } else {
            t.over(w);
        }
    }
    [[nodiscard]] bool may_leave(Waiter&) noexcept { return true; }
    void left(told&) noexcept {}
    void look(told&) noexcept {} // nobody signals
    void next_phase(told& t) noexcept {
        left_.store(expected_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        phase_.fetch_add(1, std::memory_order_release);
        while (!this->queue_.empty()) {
            t.over(this->queue_.pop());
        }
    }

    typename Atomics::template atomic<std::ptrdiff_t> left_; // to arrive in this phase
    typename Atomics::template atomic<std::ptrdiff_t> expected_;
    typename Atomics::template atomic<std::uint64_t> phase_{0};
};

struct no_completion {
    void operator()() noexcept {}
};

} // namespace detail

/// std::barrier for coroutines: a number of participants wait for each other, again and again.
///
///     coil::barrier step{workers};
///     // each worker:
///     for (...) {
///         compute(part);
///         co_await step.arrive_and_wait();
///     }
///
/// When the last one of a phase arrives, `completion` runs there, then all go on.
///
/// Threading: any context and any thread. Who waits goes on on its own context.
///
/// Cancellation: a wait of a task that is asked to stop throws std::system_error with
/// std::errc::operation_canceled, unless the phase ended first. It has arrived all the same; the
/// next phase expects it, unless it calls arrive_and_drop().
///
/// Errors: more arrivals than the phase expects end the program with a sentence.
template <class CompletionFunction = detail::no_completion>
class barrier {
    static_assert(std::is_invocable_v<CompletionFunction&>,
                  "a barrier's completion is called without arguments");
    static_assert(!std::is_invocable_v<CompletionFunction&> ||
                      std::is_nothrow_invocable_v<CompletionFunction&>,
                  "a barrier's completion must not throw: declare it noexcept");
    using core = detail::basic_barrier<detail::barrier_entry, detail::sync_waiter>;

public:
    /// Which phase its owner has arrived in.
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
        assert(expected >= 0);
    }
    barrier(const barrier&) = delete;
    barrier& operator=(const barrier&) = delete;
    ~barrier() = default;

    [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept {
        return std::numeric_limits<std::ptrdiff_t>::max();
    }

    /// Does not wait: wait(token) does.
    [[nodiscard]] arrival_token arrive(std::ptrdiff_t n = 1) noexcept {
        const std::uint64_t phase = core_.phase();
        count(n);
        return arrival_token(phase);
    }
    auto wait(arrival_token&& arrived) noexcept { return awaitable(*this, arrived.phase_, false); }
    /// Arrives when it is awaited.
    auto arrive_and_wait() noexcept { return awaitable(*this, 0, true); }
    /// Arrives, and is no participant of the phases that follow.
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
        void await_resume() {
            if (!this->succeeded()) [[unlikely]] {
                detail::throw_wait_cancelled("barrier");
            }
        }

    private:
        friend class detail::sync_awaiter<awaiter, detail::barrier_entry>;
        static constexpr bool gives_back = false;

        [[nodiscard]] bool take_now() noexcept { return source_.core_.is_over(this->phase); }
        [[nodiscard]] core& room() noexcept { return source_.core_; }
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
