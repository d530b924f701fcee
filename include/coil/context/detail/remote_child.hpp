#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/detail/claim_once.hpp>
#include <coil/context/detail/destructor_waits.hpp>
#include <coil/core/detail/backoff.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/list_node.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/inplace_stop_token.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

class remote_child_owner;

/// A task submitted to an executor on behalf of an awaiter, which may withdraw it. The ticket is
/// not part of the awaiter, because it cannot be removed from the executor's queue, which may stall
/// for any length of time. Until it arrives, both sides share it. The side that first takes the
/// awaiter from the ticket may use the awaiter; the other side deletes the ticket.
class remote_child_ticket : public frame_allocated {
public:
    /// Called on arrival. Returns null if the ticket was withdrawn; the caller must then delete it.
    [[nodiscard]] remote_child_owner* take() noexcept {
        return claim_.claim() ? &awaiter_ : nullptr;
    }
    /// Called on the awaiting thread. Returns true if the ticket has not arrived; the receiver then
    /// owns it.
    [[nodiscard]] bool withdraw() noexcept { return claim_.claim(); }
    /// Called on the awaiting thread if withdraw() has failed: waits until the context that has
    /// taken a request from the ticket no longer uses the awaiter, which takes a few instructions.
    void wait_until_noted() const noexcept {
        for (backoff wait; is_requesting_.load(std::memory_order_acquire); wait.once_more()) {
        }
    }

protected:
    explicit remote_child_ticket(remote_child_owner& awaiter) noexcept : awaiter_(awaiter) {}
    ~remote_child_ticket() = default;

private:
    friend class remote_child_owner;

    remote_child_owner& awaiter_;
    claim_once claim_;
    std::atomic<bool> is_requesting_{false}; // it was posted with a request to destroy the task
};

/// The owner of a task that runs on another context or executor while a coroutine waits for it.
/// That coroutine may have to end the task at any time, so the owner records the context on which
/// the task is.
class remote_child_owner : public task_owner, list_node<remote_child_owner> {
public:
    [[nodiscard]] bool is_unwanted() const noexcept final {
        return state_.load(std::memory_order_relaxed) != wanted || token.stop_requested();
    }
    [[nodiscard]] bool is_kill_requested() const noexcept final {
        return state_.load(std::memory_order_acquire) == kill_requested;
    }
    [[nodiscard]] bool is_on_context() const noexcept final { return place_.is_known(); }
    void moved_to(event_loop* loop) noexcept final;
    /// The event_loop::wait_epoch() at which the task arrived on its context.
    [[nodiscard]] std::uint64_t came() const noexcept { return came_; }
    /// Why the task is destroyed, even if its context does that without a request.
    [[nodiscard]] const destructor_waits::request& kill_request() const noexcept {
        return request_;
    }
    [[nodiscard]] virtual promise_base& child() noexcept = 0;

protected:
    explicit remote_child_owner(inplace_stop_token stop) noexcept
        : task_owner(stop, false, kind::remote_child) {}
    ~remote_child_owner() { COIL_ASSERT(!is_linked()); }

    /// Called on the awaiting thread: the awaiting frame is being destroyed and waits for the task
    /// to end by itself.
    void set_unwanted() noexcept {
        std::uint8_t expected = wanted;
        state_.compare_exchange_strong(expected, unwanted, std::memory_order_relaxed);
    }
    /// Called on the awaiting thread after the ticket has reached its executor: the task is
    /// destroyed by the context on which it is, or by the next one that it reaches, as soon as
    /// possible. If the task is on a context, this posts the ticket to it.
    template <class Ticket>
    void request_kill(Ticket& ticket) noexcept {
        request_kill(ticket, ticket, [](queue_node& node, event_loop& loop) noexcept {
            auto& arrived = static_cast<Ticket&>(node);
            if (remote_child_owner* const owner = arrived.take()) {
                owner->note_kill_request(loop);
                noted(arrived);
            } else {
                delete &arrived;
            }
        });
    }

private:
    friend class kill_requests;
    friend list_node;

    using delivery = void (*)(queue_node&, event_loop&) noexcept;

    void request_kill(remote_child_ticket& ticket, queue_node& node, delivery deliver) noexcept;
    void add_destructor_as_cause() noexcept;
    void note_kill_request(event_loop& loop) noexcept;
    /// Afterwards the awaiter and the ticket may be destroyed.
    static void noted(remote_child_ticket& ticket) noexcept {
        ticket.is_requesting_.store(false, std::memory_order_release);
    }
    /// Whether the last examination by kill_requests found that it awaits a remote operation.
    [[nodiscard]] bool is_held_up() const noexcept { return held_up_; }
    void set_held_up(bool held_up) noexcept { held_up_ = held_up; }
    // A task whose destruction was requested while a destructor waits on its context's thread is
    // blocked until that destructor has returned. If that destructor is part of a cycle of waits,
    // the task is released instead, and destroyed immediately. `at` belongs to the task's loop.

    void block(const destructor_waits& at) noexcept;
    /// Valid until any wait on that loop begins or ends, because then other destructors may be in
    /// progress. The task remains blocked, for the others that wait for it, until it has been
    /// destroyed.
    void release(const destructor_waits& at) noexcept { released_in_ = at.changes(); }
    [[nodiscard]] bool is_released(const destructor_waits& at) const noexcept {
        return released_in_ == at.changes();
    }
    void unblock() noexcept;

    // wanted → unwanted → kill_requested, or skipping unwanted; written on the awaiting thread.
    static constexpr std::uint8_t wanted = 0;
    static constexpr std::uint8_t unwanted = 1;
    static constexpr std::uint8_t kill_requested = 2;

    /// The context on which the task is. It exists as long as the lock is held, because the task
    /// cannot leave it.
    class place {
    public:
        event_loop* lock() noexcept;
        void unlock(event_loop* loop) noexcept;
        [[nodiscard]] bool is_known() const noexcept {
            return (word_.load(std::memory_order_relaxed) & ~locked) != 0;
        }

    private:
        static constexpr std::uintptr_t locked = 1;
        std::atomic<std::uintptr_t> word_{0};
    };

    place place_;
    destructor_waits::request request_; // its cause is set before state_ is kill_requested
    std::uint64_t came_ = 0;
    std::uint64_t released_in_ = 0; // destructor_waits::changes(), which is not 0 in a wait
    std::atomic<std::uint8_t> state_{wanted};
    bool held_up_ = false;
    bool blocked_ = false;
};

} // namespace coil::detail
