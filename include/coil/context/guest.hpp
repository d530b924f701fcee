#pragma once

#include <coil/core/frame_allocator.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/queue.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

class guest_observer;

/// By what a task is given to an executor, and asked for again. Not a part of the awaiter: nobody
/// can take it out of a queue, which may stand still for as long as it likes. While it is under
/// way it is both's, and then belongs to whoever has lost: who takes the awaiter out of it first
/// may use the awaiter, and the other one deletes it.
class guest_ticket : public frame_allocated {
public:
    /// Where it has come. Null: it was withdrawn, and is to be deleted.
    [[nodiscard]] guest_observer* take() noexcept {
        return awaiter_.exchange(nullptr, std::memory_order_acq_rel);
    }
    /// At home. True when it has not come; it is the receiver's from then on.
    [[nodiscard]] bool withdraw() noexcept { return take() != nullptr; }

protected:
    explicit guest_ticket(guest_observer& awaiter) noexcept : awaiter_(&awaiter) {}
    ~guest_ticket() = default;

private:
    friend class guest_observer;

    std::atomic<guest_observer*> awaiter_;
};

/// What observes a task that runs elsewhere while a coroutine waits for it, which may need its end
/// at any time. It knows on which context the task is, so that it can be asked for there.
class guest_observer : public root_observer {
public:
    [[nodiscard]] bool is_unwanted() const noexcept final {
        return state_.load(std::memory_order_relaxed) != wanted || token.stop_requested();
    }
    [[nodiscard]] bool is_condemned() const noexcept final {
        return state_.load(std::memory_order_relaxed) == condemned;
    }
    void moved_to(event_loop* loop) noexcept final;
    /// When it came to the context where it is: event_loop::waits().
    [[nodiscard]] std::uint64_t came() const noexcept { return came_; }

protected:
    explicit guest_observer(inplace_stop_token stop) noexcept
        : root_observer(stop, false, kind::guest) {}
    ~guest_observer() = default;

    /// At home: the awaiting frame is to be destroyed, and waits for the task to end by itself.
    void set_unwanted() noexcept {
        std::uint8_t expected = wanted;
        state_.compare_exchange_strong(expected, unwanted, std::memory_order_relaxed);
    }
    /// At home, when the ticket has come to its executor: the task is destroyed by the context
    /// where it is, or by the next to which it comes, as soon as that can be done. The ticket is
    /// under way again when this has posted it.
    template <class Ticket>
    void condemn(Ticket& ticket) noexcept {
        condemn(ticket, ticket, [](queue_node& node, event_loop& loop) noexcept {
            auto& come = static_cast<Ticket&>(node);
            if (come.take() == nullptr) {
                delete &come;
                return;
            }
            expect_condemned(loop);
        });
    }

private:
    using delivery = void (*)(queue_node&, event_loop&) noexcept;

    void condemn(guest_ticket& ticket, queue_node& node, delivery deliver) noexcept;
    static void expect_condemned(event_loop& loop) noexcept;

    // wanted → unwanted → condemned, or at once; written at home.
    static constexpr std::uint8_t wanted = 0;
    static constexpr std::uint8_t unwanted = 1;
    static constexpr std::uint8_t condemned = 2;

    /// Where it is: that context is there for as long as the lock is held, since the task cannot
    /// leave it.
    class place {
    public:
        event_loop* lock() noexcept;
        void unlock(event_loop* loop) noexcept;

    private:
        static constexpr std::uintptr_t locked = 1;
        std::atomic<std::uintptr_t> word_{0};
    };

    place place_;
    std::uint64_t came_ = 0;
    std::atomic<std::uint8_t> state_{wanted};
};

} // namespace coil::detail
