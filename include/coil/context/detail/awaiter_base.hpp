#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/probes.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/this_task.hpp>

#include <atomic>
#include <coroutine>
#include <cstdint>

namespace coil::detail {

/// A queue_node of a distinct type, so that a class can have a second node for a stop source's
/// list.
struct ready_node : queue_node {};

/// The kinds of waits that a list of tasks distinguishes.
enum class wait_kind : std::uintptr_t { other, operation, sleep, sync, stream, join, child };

/// A suspended await that the event loop will resume: the part of an awaiter that every kind
/// shares. It is part of the awaiting coroutine's frame and does not move once started.
///
///     phase     meaning                                    transition to it
///     -------   -----------------------------------------  ------------------------------------
///     fresh     not started                                -
///     pending   the coroutine is suspended                 begin(): from fresh, done or resumed
///     done      what it waits for has ended                finish(), finish_unobserved()
///     resumed   the result was fetched, or is not wanted   resumed(): from any; from pending if
///                                                          no coroutine is to be resumed
///
/// The owner thread makes all transitions. A stop may be requested on any thread: the callback then
/// posts the stop node to the owner's inbox. The coroutine does not become ready before that post
/// has been delivered, because the node is part of the frame.
///
/// A derived class has `void cancel() noexcept`, called on the owner thread: finish() follows now
/// or later. A call after the wait has ended has no effect. Its destructor calls
/// leave_if_under_way(), after it has ended a pending wait.
class awaiter_base : public ready_node, public stop_callback_base {
public:
    awaiter_base(const awaiter_base&) = delete;
    awaiter_base& operator=(const awaiter_base&) = delete;

    [[nodiscard]] bool pending() const noexcept { return is(phase::pending); }
    [[nodiscard]] wait_kind kind() const noexcept {
        return static_cast<wait_kind>((word_.load(std::memory_order_relaxed) & kind_mask) >>
                                      kind_shift);
    }

    /// The link in the loop's queues.
    [[nodiscard]] queue_node& node() noexcept { return static_cast<ready_node&>(*this); }

protected:
    enum class phase : std::uintptr_t { fresh, pending, done, resumed };

    awaiter_base() noexcept = default;
    ~awaiter_base() { COIL_ASSERT(!under_way()); }
    /// Called by the destructors of derived classes rather than by this one: most of them know
    /// already whether a wait has begun, and destroy an awaiter that was not needed at once.
    void leave_if_under_way() noexcept {
        if (under_way()) [[unlikely]] {
            leave_on_destruction();
        }
    }

    [[nodiscard]] bool is(phase p) const noexcept {
        return (word_.load(std::memory_order_relaxed) & phase_mask) ==
               static_cast<std::uintptr_t>(p);
    }
    /// Never started.
    [[nodiscard]] bool is_fresh() const noexcept { return is(phase::fresh); }
    /// Started and not yet resumed.
    [[nodiscard]] bool under_way() const noexcept {
        static_assert(static_cast<int>(phase::pending) == 1 && static_cast<int>(phase::done) == 2);
        return ((word_.load(std::memory_order_relaxed) + 1) & 2) != 0;
    }
    [[nodiscard]] event_loop& loop() const noexcept {
        return *reinterpret_cast<event_loop*>(word_.load(std::memory_order_relaxed) & ~flags_mask);
    }

    /// A wait may begin without a coroutine (an eager operation): see join().
    void begin(event_loop& loop, std::coroutine_handle<> waiter,
               wait_kind kind = wait_kind::other) noexcept {
        COIL_ASSERT(!pending());
        node().coroutine = waiter;
        word_.store(reinterpret_cast<std::uintptr_t>(&loop) |
                        (static_cast<std::uintptr_t>(kind) << kind_shift) |
                        static_cast<std::uintptr_t>(phase::pending),
                    std::memory_order_relaxed);
        if (is_tracing()) [[unlikely]] {
            note_wait(waiter, kind);
        }
    }

    /// Lets a stop request cancel this wait; immediately if a stop has already been requested.
    template <class Self>
    void observe(inplace_stop_token token) noexcept {
        if (!token.stop_possible()) {
            return;
        }
        attach(token, [](queue_node& node) noexcept {
            awaiter_base& base = of_callback(node);
            if (base.on_owner_thread()) {
                static_cast<Self&>(static_cast<stop_callback_base&>(node)).cancel();
                return;
            }
            node.deliver = [](queue_node& posted, event_loop&) noexcept {
                if (of_callback(posted).stop_delivered()) {
                    static_cast<Self&>(static_cast<stop_callback_base&>(posted)).cancel();
                }
            };
            base.post_stop();
        });
    }

    /// The wait is over: the coroutine, if there is one yet, becomes ready.
    void finish() noexcept;
    /// finish() of a wait that no stop can reach. The caller makes the coroutine ready.
    void finish_unobserved() noexcept {
        COIL_ASSERT(pending() && !attached());
        word_.store(word_.load(std::memory_order_relaxed) + to_done, std::memory_order_relaxed);
    }

    /// Makes `waiter` the coroutine that waits. Precondition: the wait is pending, and no coroutine
    /// waits.
    template <class Self>
    void join(std::coroutine_handle<> waiter, inplace_stop_token token) noexcept {
        COIL_ASSERT(pending() && node().coroutine == nullptr);
        node().coroutine = waiter;
        observe<Self>(token);
    }
    /// Called when the coroutine that joined is destroyed. Returns true if it had not been resumed
    /// yet; it is not resumed later either.
    bool leave() noexcept;

    /// Called before a pending wait is destroyed: afterwards no stop request reaches it.
    void stop_observing() noexcept;

    void resumed() noexcept { enter(phase::resumed); }

private:
    friend class leaf_search;

    // One word for the loop, whose address leaves seven bits free (it is aligned to 128), the
    // phase, the kind, and two marks of a stop that another thread requests. That thread sets
    // `posted` only. The owner writes without an atomic read-modify-write where no such stop can be
    // under way: before attach(), after detach(), after the delivery.
    static constexpr std::uintptr_t phase_mask = 3;
    static constexpr std::uintptr_t posted = 4;
    static constexpr std::uintptr_t delivered = 8;
    static constexpr int kind_shift = 4;
    static constexpr std::uintptr_t kind_mask = std::uintptr_t{7} << kind_shift;
    static constexpr std::uintptr_t flags_mask = 127;
    static constexpr std::uintptr_t to_done = // from pending
        static_cast<std::uintptr_t>(phase::done) - static_cast<std::uintptr_t>(phase::pending);

    void enter(phase p) noexcept {
        word_.store((word_.load(std::memory_order_relaxed) & ~phase_mask) |
                        static_cast<std::uintptr_t>(p),
                    std::memory_order_relaxed);
    }
    /// Whether a stop was posted and not delivered yet.
    [[nodiscard]] bool stop_is_posted() const noexcept {
        return (word_.load(std::memory_order_relaxed) & (posted | delivered)) == posted;
    }
    [[nodiscard]] static awaiter_base& of_callback(queue_node& node) noexcept {
        return static_cast<awaiter_base&>(static_cast<stop_callback_base&>(node));
    }
    [[nodiscard]] bool on_owner_thread() const noexcept { return &loop() == current_loop; }
    void make_waiter_ready() noexcept;
    void post_stop() noexcept;
    /// Returns whether the wait is still pending.
    bool stop_delivered() noexcept;
    void leave_on_destruction() noexcept;
    void leave_ready_queue() noexcept;

    std::atomic<std::uintptr_t> word_{0};
};

} // namespace coil::detail
