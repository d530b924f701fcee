#pragma once

#include <coil/base/minmax.hpp>
#include <coil/base/owned.hpp>
#include <coil/core/detail/queue.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace coil::detail {

/// The overflow of a ready_queue after the first removal from it: an array in which each node
/// stores its index.
class indexed_overflow {
public:
    [[nodiscard]] bool empty() const noexcept { return waiting_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return waiting_; }

    /// Appends the `count` nodes of a list and empties the list. Returns false if there is no
    /// memory.
    [[nodiscard]] bool append(fifo& list, std::size_t count) noexcept {
        if (!make_room(count)) {
            return false;
        }
        for (std::size_t i = 0; i < count; ++i) {
            queue_node& node = list.pop();
            set_place(node, end_);
            at(end_++) = &node;
        }
        waiting_ += count;
        return true;
    }

    /// Removes the oldest node; returns null if empty.
    [[nodiscard]] queue_node* pop() noexcept {
        if (waiting_ == 0) {
            return nullptr;
        }
        while (at(begin_) == nullptr) {
            ++begin_;
        }
        queue_node* const oldest = at(begin_++);
        one_less();
        return oldest;
    }

    /// Returns false if the node is not here; its link may then have any value.
    bool remove(queue_node& node) noexcept {
        const std::uintptr_t place = place_of(node);
        if (place - begin_ >= end_ - begin_ || at(place) != &node) {
            return false;
        }
        at(place) = nullptr;
        one_less();
        return true;
    }

    /// Calls `f` with the nodes in the `most` oldest places, of which some may be empty. Returns
    /// `most` minus the number of places visited.
    template <class Function>
    std::size_t visit(Function f, std::size_t most) const {
        for (std::uintptr_t place = begin_; place != end_ && most > 0; ++place, --most) {
            if (const queue_node* const node = places_[place - first_]) {
                f(*node);
            }
        }
        return most;
    }

    void clear() noexcept {
        places_.reset();
        capacity_ = 0;
        waiting_ = 0;
        begin_ = end_;
    }

private:
    /// A node in the array stores its running number in its link, which is unused meanwhile.
    static void set_place(queue_node& node, std::uintptr_t place) noexcept {
        node.next = reinterpret_cast<queue_node*>(place);
    }
    [[nodiscard]] static std::uintptr_t place_of(const queue_node& node) noexcept {
        return reinterpret_cast<std::uintptr_t>(node.next);
    }

    [[nodiscard]] queue_node*& at(std::uintptr_t place) noexcept { return places_[place - first_]; }

    void one_less() noexcept {
        if (--waiting_ == 0) {
            clear();
        }
    }

    [[nodiscard]] bool make_room(std::size_t more) noexcept {
        const std::size_t used = end_ - begin_;
        if (places_ && more <= capacity_ - (end_ - first_)) {
            return true;
        }
        const std::size_t larger = max(used + more, 2 * used);
        owned<queue_node*[]> room(new (std::nothrow) queue_node*[larger]);
        if (!room) {
            return false;
        }
        for (std::size_t i = 0; i < used; ++i) {
            room[i] = at(begin_ + i);
        }
        places_ = std::move(room);
        capacity_ = larger;
        first_ = begin_;
        return true;
    }

    owned<queue_node*[]> places_; // null for removed nodes
    std::size_t capacity_ = 0;
    std::size_t waiting_ = 0;
    // Running numbers of places_[0], of the oldest node, and of the next one to be appended.
    std::uintptr_t first_ = 0;
    std::uintptr_t begin_ = 0;
    std::uintptr_t end_ = 0;
};

} // namespace coil::detail
