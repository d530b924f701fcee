#pragma once

#include <coil/base/minmax.hpp>
#include <coil/base/owned.hpp>
#include <coil/core/detail/list_node.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace coil::detail {

/// A deadline in a timer_wheel; part of its waiter, so arming does not allocate per timer. Either a
/// timer_call or a sleep_timer.
struct timer_node : list_node<timer_node> {
    timer_node(const timer_node&) = delete;
    timer_node& operator=(const timer_node&) = delete;

    [[nodiscard]] bool armed() const noexcept { return is_linked(); }
    /// While it is armed.
    [[nodiscard]] std::int64_t tick() const noexcept { return word >> 1; }

protected:
    timer_node() noexcept = default;
    ~timer_node() = default;

    /// While the timer is armed: the tick and, in the lowest bit, whether it is a timer_call. While
    /// it is not, a derived class may use the word.
    std::int64_t word = 0;

private:
    friend class timer_wheel;

    /// Called when the deadline has passed. The node is disarmed.
    inline void fire() noexcept;
};

/// A deadline that calls a function.
struct timer_call : timer_node {
    using function = void (*)(timer_node&) noexcept;

    explicit timer_call(function f) noexcept : call(f) {}

    const function call;
};

/// The deadline of a sleep_awaiter. It has no pointer to the function that ends the sleep, because
/// programs have many sleepers (tests/context/memory_test.cpp).
struct sleep_timer : timer_node {};

/// Ends the sleep_awaiter of which the timer is a part.
void end_sleep(sleep_timer& timer) noexcept;

inline void timer_node::fire() noexcept {
    if ((word & 1) != 0) {
        static_cast<timer_call&>(*this).call(*this);
    } else {
        end_sleep(static_cast<sleep_timer&>(*this));
    }
}

/// A hierarchical timer wheel: arming, disarming and firing are O(1), independent of the number of
/// timers.
///
/// Time is divided into ticks of 2^15 ns (33 µs). A timer never fires early, and the wheel delays
/// it by at most one tick; rounding deadlines up to a tick allows one wake-up to fire every timer
/// of that tick. Timers of one tick fire in the order in which they were armed, unless they were on
/// different levels of the wheel.
///
/// Level 0 has a slot per tick for the next 134 ms. Each slot of a higher level covers a whole
/// revolution of the level below and is distributed downwards when its time begins.
class timer_wheel {
public:
    static constexpr int tick_shift = 15;
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

    /// Allocates the slots on the first call; returns false if there is no memory. `now_ns` is used
    /// only while no timer is armed.
    [[nodiscard]] bool arm(timer_call& node, std::int64_t deadline_ns,
                           std::int64_t now_ns) noexcept {
        return arm(node, deadline_ns, now_ns, 1);
    }
    [[nodiscard]] bool arm(sleep_timer& node, std::int64_t deadline_ns,
                           std::int64_t now_ns) noexcept {
        return arm(node, deadline_ns, now_ns, 0);
    }

    void disarm(timer_node& node) noexcept {
        if (node.armed()) {
            unlink(node);
            --size_;
        }
    }

    /// Disarms all timers.
    void clear() noexcept;

    /// The start of the tick that contains this time.
    [[nodiscard]] static std::int64_t start_of_tick(std::int64_t ns) noexcept {
        return ns >> tick_shift << tick_shift;
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// The time of the next check in ns: never later than the tick of the next timer. `never` if
    /// there is none.
    [[nodiscard]] std::int64_t next_ns() noexcept {
        if (size_ == 0) {
            return never;
        }
        next_event_ = find_next_event();
        return next_event_ << tick_shift;
    }

    /// How long ago the next check was due; negative if it is not due. Precondition: a timer is
    /// armed.
    [[nodiscard]] std::int64_t lag_ns(std::int64_t now_ns) const noexcept {
        return next_event_ == never ? -1 : now_ns - (next_event_ << tick_shift);
    }
    /// Disarms and fires every timer whose deadline has passed, in tick order. Callbacks may arm
    /// and disarm timers. Returns the number of timers that fired.
    std::int32_t expire(std::int64_t now_ns) noexcept {
        const std::int64_t now = now_ns >> tick_shift;
        std::int32_t fired = 0;
        while (size_ > 0 && next_event_ <= now) {
            next_event_ = find_next_event();
            if (next_event_ > now) {
                break;
            }
            current_ = next_event_;
            // The batch has a local head, so that a callback may disarm another timer of the batch.
            timer_node* due = advance();
            if (due != nullptr) {
                due->link = &due;
            }
            while (due != nullptr) {
                timer_node& node = *due;
                node.unlink();
                --size_;
                ++fired;
                node.fire();
            }
        }
        current_ = current_ > now ? current_ : now;
        return fired;
    }

private:
    static constexpr int level0_bits = 12;
    static constexpr int level_bits = 8;
    static constexpr std::size_t higher_levels = 3;

    template <std::size_t N>
    struct level {
        std::array<timer_node*, N> slot{};
        std::array<std::uint64_t, N / 64> used{}; // the slots that may hold something

        /// The distance from slot `from` to the next used one, wrapping around; N if there is none.
        [[nodiscard]] std::size_t distance_to_used(std::size_t from) const noexcept {
            for (std::size_t step = 0; step < N;) {
                const std::size_t i = (from + step) % N;
                const std::uint64_t rest = used[i / 64] >> (i % 64);
                if (rest != 0) {
                    step += static_cast<std::size_t>(std::countr_zero(rest));
                    return step < N ? step : N;
                }
                step += 64 - i % 64;
            }
            return N;
        }
    };

    struct wheel {
        level<std::size_t{1} << level0_bits> ticks;
        std::array<level<std::size_t{1} << level_bits>, higher_levels> higher;
    };

    static std::int64_t ceil_tick(std::int64_t ns) noexcept {
        constexpr std::int64_t mask = (std::int64_t{1} << tick_shift) - 1;
        return (ns >> tick_shift) + ((ns & mask) != 0 ? 1 : 0);
    }

    template <std::size_t N>
    static void put(level<N>& where, std::int64_t index, timer_node& node) noexcept {
        const std::size_t i = static_cast<std::size_t>(index) % N;
        node.push_to(where.slot[i]);
        where.used[i / 64] |= std::uint64_t{1} << (i % 64);
    }

    bool arm(timer_node& node, std::int64_t deadline_ns, std::int64_t now_ns,
             std::int64_t kind) noexcept {
        if (!wheel_ && !allocate()) {
            return false;
        }
        if (size_ == 0) {
            // Never moves back: a timer that expire() fires and that is rearmed immediately must
            // wait for the next tick.
            current_ = max(current_, now_ns >> tick_shift);
            next_event_ = never;
        }
        node.word = ceil_tick(deadline_ns) << 1 | kind;
        ++size_;
        insert(node);
        return true;
    }

    bool allocate() noexcept;
    void insert(timer_node& node) noexcept;
    void unlink(timer_node& node) noexcept;
    timer_node* advance() noexcept;
    [[nodiscard]] std::int64_t find_next_event() const noexcept;

    owned<wheel> wheel_;
    std::size_t size_ = 0;
    std::int64_t current_ = 0;        // no timer of an earlier tick is left
    std::int64_t next_event_ = never; // nothing to do before this tick
};

} // namespace coil::detail
