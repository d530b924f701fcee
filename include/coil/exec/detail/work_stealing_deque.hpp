#pragma once

#include <coil/exec/detail/fences.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace coil::detail {

/// A deque whose owner pushes and pops at one end, without a lock or a read-modify-write, while any
/// thread may steal at the other: that of Chase and Lev, with the memory orders of Lê, Pop, Cohen
/// and Zappa Nardelli (2013). All stores to `bottom_` are release stores, so what was pushed is
/// published by whichever of them a thief reads; theirs rely on a fence that stands for all.
///
/// It grows as needed. Thieves may read an array that has been outgrown for as long as they like,
/// so those stay until the deque goes; together they are no larger than the one in use.
template <class T, class Atomics = pool_atomics>
class basic_work_stealing_deque {
public:
    /// May throw std::bad_alloc. `capacity` is a power of two.
    explicit basic_work_stealing_deque(std::size_t capacity = 256)
        : array_(new array(new slot[capacity], capacity, nullptr)) {}
    basic_work_stealing_deque(const basic_work_stealing_deque&) = delete;
    basic_work_stealing_deque& operator=(const basic_work_stealing_deque&) = delete;
    ~basic_work_stealing_deque() {
        for (array* a = array_.load(std::memory_order_relaxed); a != nullptr;) {
            array* const outgrown = a->outgrown;
            delete[] a->slots;
            delete a;
            a = outgrown;
        }
    }

    /// Owner. False: it is full, and there is no memory for a larger one.
    [[nodiscard]] bool push(T& item) noexcept {
        const index b = bottom_.load(std::memory_order_relaxed);
        array* a = array_.load(std::memory_order_relaxed);
        if (b - top_seen_ >= a->capacity()) [[unlikely]] {
            // Acquired: thieves have read the slots that are free now.
            top_seen_ = top_.load(std::memory_order_acquire);
            if (b - top_seen_ >= a->capacity()) {
                a = grown(*a, b);
                if (a == nullptr) {
                    return false;
                }
            }
        }
        a->at(b).store(&item, std::memory_order_relaxed);
        bottom_.store(b + 1, std::memory_order_release);
        return true;
    }

    /// Owner: the youngest, or null.
    [[nodiscard]] T* pop() noexcept {
        const index b = bottom_.load(std::memory_order_relaxed) - 1;
        if (top_.load(std::memory_order_relaxed) > b) {
            return nullptr; // and nobody else adds anything
        }
        array* const a = array_.load(std::memory_order_relaxed);
        bottom_.store(b, std::memory_order_release);
        Atomics::fence(); // either a thief sees that it is taken, or this sees how far they are
        index t = top_.load(std::memory_order_relaxed);
        if (t < b) [[likely]] {
            return a->at(b).load(std::memory_order_relaxed);
        }
        T* item = nullptr;
        if (t == b) { // the last one: against the thieves
            item = a->at(b).load(std::memory_order_relaxed);
            if (!top_.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst)) {
                item = nullptr;
            }
        }
        bottom_.store(b + 1, std::memory_order_release);
        return item;
    }

    /// Any thread: the oldest, or null; also null when another thread took that one meanwhile.
    [[nodiscard]] T* steal() noexcept {
        index t = top_.load(std::memory_order_acquire);
        Atomics::fence();
        const index b = bottom_.load(std::memory_order_acquire);
        if (t >= b) {
            return nullptr;
        }
        const array* const a = array_.load(std::memory_order_acquire);
        T* const item = a->at(t).load(std::memory_order_relaxed);
        if (!top_.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst)) {
            return nullptr;
        }
        return item;
    }

    /// Any thread: whether nothing was there.
    [[nodiscard]] bool looks_empty() const noexcept {
        const index t = top_.load(std::memory_order_relaxed);
        return bottom_.load(std::memory_order_relaxed) <= t;
    }

private:
    using index = std::int64_t;
    struct slot {
        typename Atomics::template atomic<T*> item{nullptr};
    };
    struct array {
        array(slot* s, std::size_t c, array* o) noexcept : slots(s), mask(c - 1), outgrown(o) {}
        [[nodiscard]] index capacity() const noexcept { return static_cast<index>(mask) + 1; }
        [[nodiscard]] auto& at(index i) const noexcept {
            return slots[static_cast<std::size_t>(i) & mask].item;
        }

        slot* const slots;
        const std::size_t mask;
        array* const outgrown;
    };

    array* grown(array& from, index b) noexcept {
        const std::size_t capacity = 2 * (from.mask + 1);
        array* to = nullptr;
        try {
            std::unique_ptr<slot[]> slots(new slot[capacity]);
            to = new array(slots.get(), capacity, &from);
            static_cast<void>(slots.release());
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        for (index i = top_seen_; i < b; ++i) {
            to->at(i).store(from.at(i).load(std::memory_order_relaxed), std::memory_order_relaxed);
        }
        array_.store(to, std::memory_order_release);
        return to;
    }

    // Thieves write this.
    alignas(64) typename Atomics::template atomic<index> top_{0};
    // The owner writes these.
    alignas(64) typename Atomics::template atomic<index> bottom_{0};
    typename Atomics::template atomic<array*> array_;
    index top_seen_ = 0; // top_ is there or further
};

} // namespace coil::detail
