#pragma once

#include <coil/exec/detail/fences.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace coil::detail {

/// The work-stealing deque of Chase and Lev, with the memory orders of Lê, Pop, Cohen and Zappa
/// Nardelli (2013). The owner pushes and pops at one end without a lock, and without a
/// read-modify-write except to pop the last item; any thread may steal at the other end. Unlike in
/// their version, all stores to `bottom_` are release stores, so each of them publishes all items
/// that were pushed before.
///
/// It grows as needed. Outgrown arrays are kept until the deque is destroyed, because thieves may
/// still read them; together they are no larger than the current one.
template <class T, class Atomics = pool_atomics>
class basic_work_stealing_deque {
public:
    /// May throw std::bad_alloc. `capacity` must be a power of two.
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

    /// Owner only. Returns false if it is full and there is no memory to grow.
    [[nodiscard]] bool push(T& item) noexcept {
        const index b = bottom_.load(std::memory_order_relaxed);
        array* a = array_.load(std::memory_order_relaxed);
        if (b - top_seen_ >= a->capacity()) [[unlikely]] {
            // Acquire: thieves have read the slots that are free now.
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

    /// Owner only. Returns the youngest item or null.
    [[nodiscard]] T* pop() noexcept {
        const index b = bottom_.load(std::memory_order_relaxed) - 1;
        if (top_.load(std::memory_order_relaxed) > b) {
            return nullptr; // only the owner adds items
        }
        array* const a = array_.load(std::memory_order_relaxed);
        bottom_.store(b, std::memory_order_release);
        // either a thief sees that the item is taken, or the owner sees the thieves' progress
        Atomics::fence();
        index t = top_.load(std::memory_order_relaxed);
        if (t < b) [[likely]] {
            return a->at(b).load(std::memory_order_relaxed);
        }
        T* item = nullptr;
        if (t == b) { // the last item: compete with the thieves
            item = a->at(b).load(std::memory_order_relaxed);
            if (!top_.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst)) {
                item = nullptr;
            }
        }
        bottom_.store(b + 1, std::memory_order_release);
        return item;
    }

    /// May be called from any thread. Returns the oldest item, or null if there is none or another
    /// thread took it.
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

    /// May be called from any thread. Returns whether the deque appeared empty.
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

    // written by thieves
    alignas(64) typename Atomics::template atomic<index> top_{0};
    // written by the owner
    alignas(64) typename Atomics::template atomic<index> bottom_{0};
    typename Atomics::template atomic<array*> array_;
    index top_seen_ = 0; // a lower bound of top_
};

} // namespace coil::detail
