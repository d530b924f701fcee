// A simple pool: a mutex, a condition variable and a std::deque.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace exec_bench {

enum class order { oldest_first, youngest_first };

// Calls each `Item`. The destructor runs the remaining ones.
template <class Item, order Order = order::oldest_first>
class mutex_pool {
public:
    explicit mutex_pool(unsigned threads) {
        for (unsigned i = 0; i < threads; ++i) {
            threads_.emplace_back([this] { run(); });
        }
    }
    mutex_pool(const mutex_pool&) = delete;
    mutex_pool& operator=(const mutex_pool&) = delete;
    ~mutex_pool() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        arrived_.notify_all();
        for (std::thread& thread : threads_) {
            thread.join();
        }
    }

    void execute(Item item) {
        {
            const std::lock_guard lock(mutex_);
            items_.push_back(std::move(item));
        }
        arrived_.notify_one();
    }

private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            arrived_.wait(lock, [this] { return ends_ || !items_.empty(); });
            if (items_.empty()) {
                return;
            }
            Item item = take();
            lock.unlock();
            item();
            lock.lock();
        }
    }

    Item take() {
        if constexpr (Order == order::oldest_first) {
            Item item = std::move(items_.front());
            items_.pop_front();
            return item;
        } else {
            Item item = std::move(items_.back());
            items_.pop_back();
            return item;
        }
    }

    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<Item> items_;
    bool ends_ = false;
    std::vector<std::thread> threads_;
};

} // namespace exec_bench
