#pragma once

#include <coil/base/minmax.hpp>
#include <coil/core/detail/atomics.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace coil::detail {

enum class ring_result : unsigned char { done, would_block, closed };

/// A bounded MPMC queue. Each cell has a stamp that determines the next access to it. A position
/// consists of the cell's index in the low bits, then the `closed` bit (tail only), then the lap. A
/// cell may be written when its stamp equals the tail's position, and read when its stamp equals
/// the head's position plus one.
///
/// A thread claims a cell by advancing the tail or the head, accesses it, and stores its stamp.
/// push() returns would_block, and pop() returns false, even if the only reason is that another
/// thread is still accessing the cell that they need. push_unless_full() and pop_unless_empty()
/// wait for that thread: they fail only if the ring is full or empty.
///
/// Claims are sequentially consistent. A thread that has claimed a cell then checks for waiters; a
/// thread that wants to wait sets its mark and then calls push_unless_full() or pop_unless_empty(),
/// which check for claims. One of the two sees the other. The stamps order only the accesses to a
/// cell, so an access costs a single locked instruction.
///
/// A private ring is used by one thread at a time, which the caller ensures. It has pointers and a
/// number of elements instead of positions and stamps, which share() computes.
template <class T, class Atomics = std_atomics>
class basic_ring {
public:
    /// The ring is private.
    explicit basic_ring(std::size_t capacity)
        : capacity_(capacity), closed_(std::bit_ceil(capacity + 1)),
          cells_(capacity > 0 ? std::make_unique<cell[]>(capacity) : nullptr),
          end_(cells_.get() + capacity), first_(cells_.get()), free_(cells_.get()) {}
    basic_ring(const basic_ring&) = delete;
    basic_ring& operator=(const basic_ring&) = delete;
    ~basic_ring() {
        if constexpr (!std::is_trivially_destructible_v<T>) {
            if (is_private()) {
                share();
            }
            const std::size_t tail = tail_.load(std::memory_order_relaxed) & ~closed_;
            for (std::size_t at = head_.load(std::memory_order_relaxed); at != tail;
                 at = after(at, closed_)) {
                std::destroy_at(std::addressof(cells_[at & (closed_ - 1)].value));
            }
        }
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    /// Approximate while other threads push and pop.
    [[nodiscard]] std::size_t size() const noexcept {
        if (is_private()) {
            return elements_.load(std::memory_order_relaxed);
        }
        const std::size_t head = count(head_.load(std::memory_order_relaxed));
        const std::size_t tail = count(tail_.load(std::memory_order_relaxed) & ~closed_);
        return tail < head ? 0 : tail - head < capacity_ ? tail - head : capacity_;
    }

    [[nodiscard]] bool is_private() const noexcept {
        return is_private_.load(std::memory_order_relaxed);
    }
    /// Ends the private use. What was done before must be visible to this thread, and what this
    /// does to all threads before their next access.
    void share() noexcept {
        const std::size_t elements = elements_.load(std::memory_order_relaxed);
        const auto head = static_cast<std::size_t>(first_ - cells_.get());
        std::size_t tail = head;
        std::size_t at = head;
        for (std::size_t i = 0; i < capacity_; ++i) {
            cells_[at & (closed_ - 1)].stamp.store(i < elements ? at + 1 : at,
                                                   std::memory_order_relaxed);
            at = after(at, closed_);
            if (i < elements) {
                tail = at;
            }
        }
        head_.store(head, std::memory_order_relaxed);
        tail_.store(tail | tail_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        is_private_.store(false, std::memory_order_relaxed);
    }

    /// For a private ring that is not closed: returns false if it is full.
    [[nodiscard, gnu::always_inline]] bool push_private(T& value) noexcept {
        const std::size_t elements = elements_.load(std::memory_order_relaxed);
        if (elements == capacity_) [[unlikely]] {
            return false;
        }
        cell* const to = free_;
        std::construct_at(std::addressof(to->value), std::move(value));
        free_ = following(to);
        elements_.store(elements + 1, std::memory_order_relaxed);
        return true;
    }
    /// For a private ring: returns false if it is empty.
    [[nodiscard, gnu::always_inline]] bool pop_private(std::optional<T>& value) noexcept {
        const std::size_t elements = elements_.load(std::memory_order_relaxed);
        if (elements == 0) [[unlikely]] {
            return false;
        }
        cell* const from = first_;
        first_ = following(from);
        elements_.store(elements - 1, std::memory_order_relaxed);
        value.emplace(std::move(from->value));
        std::destroy_at(std::addressof(from->value));
        return true;
    }

    // The following are for a shared ring, except where they say more.

    /// Moves from `value` only if the result is done.
    [[nodiscard, gnu::always_inline]] ring_result push(T& value) noexcept {
        // Copies: compilers load a member again after every atomic access, even a constant.
        const std::size_t closed = closed_;
        cell* const cells = cells_.get();
        std::size_t tail = tail_.load(std::memory_order_relaxed);
        for (;;) {
            if ((tail & closed) != 0) {
                return ring_result::closed;
            }
            cell& c = cells[tail & (closed - 1)];
            const std::size_t stamp = c.stamp.load(std::memory_order_acquire);
            if (stamp == tail) {
                if (tail_.compare_exchange_weak(tail, after(tail, closed),
                                                std::memory_order_seq_cst,
                                                std::memory_order_relaxed)) {
                    std::construct_at(std::addressof(c.value), std::move(value));
                    c.stamp.store(tail + 1, std::memory_order_release);
                    return ring_result::done;
                }
            } else if (is_behind(stamp, tail)) {
                // The element of the previous lap is still there, being read, or not even written
                // yet.
                return ring_result::would_block;
            } else {
                tail = tail_.load(std::memory_order_relaxed);
            }
        }
    }

    [[nodiscard, gnu::always_inline]] bool pop(std::optional<T>& value) noexcept {
        const std::size_t closed = closed_;
        cell* const cells = cells_.get();
        std::size_t head = head_.load(std::memory_order_relaxed);
        for (;;) {
            cell& c = cells[head & (closed - 1)];
            const std::size_t stamp = c.stamp.load(std::memory_order_acquire);
            if (stamp == head + 1) {
                if (head_.compare_exchange_weak(head, after(head, closed),
                                                std::memory_order_seq_cst,
                                                std::memory_order_relaxed)) {
                    value.emplace(std::move(c.value));
                    std::destroy_at(std::addressof(c.value));
                    c.stamp.store(head + lap(closed), std::memory_order_release);
                    return true;
                }
            } else if (is_behind(stamp, head + 1)) {
                return false; // empty, being written, or the previous lap is still being read
            } else {
                head = head_.load(std::memory_order_relaxed);
            }
        }
    }

    /// Moves the first values into the ring until it is full. Returns their number. On a shared
    /// ring, claims all cells at once; it may then return 0 although the ring is not full. The ring
    /// may be private.
    [[nodiscard]] std::size_t push_many(std::span<T> values) noexcept {
        return is_private() ? push_private_many(values) : push_shared_many(values);
    }
    /// Assigns elements to the first objects of `into` until the ring is empty. Returns their
    /// number. On a shared ring, claims all elements at once; it may then return 0 although the
    /// ring is not empty. The ring may be private.
    [[nodiscard]] std::size_t pop_many(std::span<T> into) noexcept {
        return is_private() ? pop_private_many(into) : pop_shared_many(into);
    }

    /// Like push(), but returns would_block only if the ring is full: waits for a push() or pop()
    /// on another thread that has claimed the cell. The ring may be private.
    [[nodiscard]] ring_result push_unless_full(T& value) noexcept {
        if (is_private()) {
            if ((tail_.load(std::memory_order_relaxed) & closed_) != 0) {
                return ring_result::closed;
            }
            return push_private(value) ? ring_result::done : ring_result::would_block;
        }
        for (;;) {
            const ring_result result = push(value);
            if (result != ring_result::would_block || is_full()) {
                return result;
            }
            Atomics::yield();
        }
    }
    /// Like pop(), but returns false only if the ring is empty. The ring may be private.
    [[nodiscard]] bool pop_unless_empty(std::optional<T>& value) noexcept {
        if (is_private()) {
            return pop_private(value);
        }
        while (!pop(value)) {
            if (is_drained()) {
                return false;
            }
            Atomics::yield();
        }
        return true;
    }

    /// Later pushes are refused. The ring may be private.
    void close() noexcept { tail_.fetch_or(closed_, std::memory_order_seq_cst); }
    /// Whether every cell claimed by a push() has been claimed by a pop(). After close(), true
    /// means that no further element will be popped. The ring may be private.
    [[nodiscard]] bool is_drained() const noexcept {
        if (is_private()) {
            return elements_.load(std::memory_order_relaxed) == 0;
        }
        return (tail_.load(std::memory_order_seq_cst) & ~closed_) ==
               head_.load(std::memory_order_seq_cst);
    }

private:
    struct cell {
        cell() noexcept {} // NOLINT(*-equals-default)
        ~cell() {}         // NOLINT(*-equals-default)
        cell(const cell&) = delete;
        cell& operator=(const cell&) = delete;

        typename Atomics::template atomic<std::size_t> stamp{0};
        union {
            T value; // between the head and the tail
        };
    };

    [[nodiscard, gnu::always_inline]] cell* following(cell* c) const noexcept {
        return c + 1 == end_ ? cells_.get() : c + 1;
    }

    [[nodiscard]] bool is_full() const noexcept {
        return (tail_.load(std::memory_order_seq_cst) & ~closed_) - lap(closed_) ==
               head_.load(std::memory_order_seq_cst);
    }
    [[nodiscard]] std::size_t push_private_many(std::span<T> values) noexcept {
        if ((tail_.load(std::memory_order_relaxed) & closed_) != 0) {
            return 0;
        }
        const std::size_t before = elements_.load(std::memory_order_relaxed);
        const std::size_t count = min(values.size(), capacity_ - before);
        cell* to = free_;
        for (std::size_t i = 0; i < count; ++i) {
            std::construct_at(std::addressof(to->value), std::move(values[i]));
            to = following(to);
            free_ = to;
            elements_.store(before + i + 1, std::memory_order_relaxed);
        }
        return count;
    }
    [[nodiscard]] std::size_t pop_private_many(std::span<T> into) noexcept {
        const std::size_t before = elements_.load(std::memory_order_relaxed);
        const std::size_t count = min(into.size(), before);
        cell* from = first_;
        for (std::size_t i = 0; i < count; ++i) {
            cell* const taken = from;
            from = following(from);
            first_ = from;
            elements_.store(before - i - 1, std::memory_order_relaxed);
            into[i] = std::move(taken->value);
            std::destroy_at(std::addressof(taken->value));
        }
        return count;
    }
    [[nodiscard]] std::size_t push_shared_many(std::span<T> values) noexcept {
        const std::size_t closed = closed_;
        std::size_t tail = 0;
        const std::size_t count = claim(tail_, tail, values.size(), 0);
        for (std::size_t i = 0; i < count; ++i) {
            cell& c = cells_[tail & (closed - 1)];
            std::construct_at(std::addressof(c.value), std::move(values[i]));
            c.stamp.store(tail + 1, std::memory_order_release);
            tail = after(tail, closed);
        }
        return count;
    }
    [[nodiscard]] std::size_t pop_shared_many(std::span<T> into) noexcept {
        const std::size_t closed = closed_;
        std::size_t head = 0;
        const std::size_t count = claim(head_, head, into.size(), 1);
        for (std::size_t i = 0; i < count; ++i) {
            cell& c = cells_[head & (closed - 1)];
            into[i] = std::move(c.value);
            std::destroy_at(std::addressof(c.value));
            c.stamp.store(head + lap(closed), std::memory_order_release);
            head = after(head, closed);
        }
        return count;
    }
    /// Advances the tail or the head over the cells, at most `most`, whose stamp is their position
    /// plus `ready`. Stores the first of their positions in `first` and returns their number.
    template <class Position>
    [[nodiscard]] std::size_t claim(Position& next, std::size_t& first, std::size_t most,
                                    std::size_t ready) noexcept {
        const std::size_t closed = closed_;
        std::size_t end = 0;
        std::size_t count = 0;
        first = next.load(std::memory_order_relaxed);
        do {
            count = 0;
            end = first;
            while (count < most && (end & closed) == 0 && stamp_at(end) == end + ready) {
                end = after(end, closed);
                ++count;
            }
            if (count == 0) {
                return 0;
            }
        } while (!next.compare_exchange_weak(first, end, std::memory_order_seq_cst,
                                             std::memory_order_relaxed));
        return count;
    }

    [[nodiscard]] std::size_t stamp_at(std::size_t position) const noexcept {
        return cells_[position & (closed_ - 1)].stamp.load(std::memory_order_acquire);
    }
    /// Whether another thread must access the cell first.
    static bool is_behind(std::size_t stamp, std::size_t position) noexcept {
        return static_cast<std::ptrdiff_t>(stamp - position) < 0;
    }
    [[nodiscard]] static std::size_t lap(std::size_t closed) noexcept { return 2 * closed; }
    /// The number of positions before this one.
    [[nodiscard]] std::size_t count(std::size_t position) const noexcept {
        return position / lap(closed_) * capacity_ + (position & (closed_ - 1));
    }
    [[nodiscard]] std::size_t after(std::size_t position, std::size_t closed) const noexcept {
        const std::size_t index = position & (closed - 1);
        return index + 1 < capacity_ ? position + 1 : position - index + lap(closed);
    }

    const std::size_t capacity_;
    const std::size_t closed_; // a bit above all indices
    const std::unique_ptr<cell[]> cells_;

    // Used while the ring is private. The tail then is the `closed` bit or 0.
    cell* const end_;
    cell* first_; // the oldest element
    cell* free_;
    typename Atomics::template atomic<std::size_t> elements_{0};
    typename Atomics::template atomic<bool> is_private_{true};

    alignas(64) typename Atomics::template atomic<std::size_t> tail_{0};
    alignas(64) typename Atomics::template atomic<std::size_t> head_{0};
};

} // namespace coil::detail
