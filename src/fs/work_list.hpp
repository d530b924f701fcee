#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace coil::fs::detail {

/// The pending work of a tree_work. It is a stack (LIFO): its length grows with the depth of the
/// tree, not with its size, and the directories in use are usually still open. Any thread.
template <class Item>
class work_list {
public:
    /// Returns false if the list is empty.
    [[nodiscard]] bool take(Item& next) {
        const std::scoped_lock lock(mutex_);
        if (items_.empty()) {
            return false;
        }
        next = std::move(items_.back());
        items_.pop_back();
        count();
        return true;
    }

    void put(Item item) {
        const std::scoped_lock lock(mutex_);
        items_.push_back(std::move(item));
        count();
    }
    void put(std::vector<Item> items) {
        const std::scoped_lock lock(mutex_);
        append(items);
    }
    /// Adds the rest of an item below the items found in it so far.
    void put(Item rest, std::vector<Item> found) {
        const std::scoped_lock lock(mutex_);
        items_.push_back(std::move(rest));
        append(found);
    }

    /// The result may be outdated by the time the function returns.
    [[nodiscard]] std::size_t size() const noexcept {
        return size_.load(std::memory_order_relaxed);
    }

private:
    void append(std::vector<Item>& more) {
        for (Item& item : more) {
            items_.push_back(std::move(item));
        }
        count();
    }
    void count() noexcept { size_.store(items_.size(), std::memory_order_relaxed); }

    std::mutex mutex_;
    std::vector<Item> items_;
    std::atomic<std::size_t> size_{0};
};

} // namespace coil::fs::detail
