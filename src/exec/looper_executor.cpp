#include <coil/core/detail/frame_allocator.hpp>
#include <coil/exec/looper_executor.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

namespace coil {

/// The thread takes one function at a time instead of a batch, so that shutdown() can count
/// everything that it drops.
struct looper_executor::core {
    std::mutex mutex;
    std::condition_variable work_available; // wakes the thread
    std::condition_variable ended;          // for join()
    detail::fifo queue;
    bool sleeping = false;
    bool closed = false;
    bool over = false;
    std::atomic<unsigned> owners{2}; // the executor and its thread

    void run() noexcept {
        std::unique_lock lock(mutex);
        while (wait_for_work(lock)) {
            auto& w = static_cast<detail::work&>(queue.pop());
            lock.unlock();
            w.run();
            lock.lock();
        }
        over = true;
        ended.notify_all();
        lock.unlock();
        release();
    }

    bool wait_for_work(std::unique_lock<std::mutex>& lock) {
        while (queue.empty() && !closed) {
            if (detail::frame_cache_overflowed) {
                lock.unlock();
                detail::trim_frame_cache();
                lock.lock();
                continue;
            }
            sleeping = true;
            work_available.wait(lock);
            sleeping = false;
        }
        return !queue.empty();
    }

    /// Called with the lock held. If the thread was woken already and has not run yet, the second
    /// notification costs no more than a call.
    void wake() {
        if (sleeping) {
            work_available.notify_one();
        }
    }

    void release() noexcept {
        if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }
};

looper_executor::looper_executor() : core_(new core) {
    try {
        thread_ = std::thread([shared = core_] { shared->run(); });
    } catch (...) {
        delete core_;
        throw;
    }
}

looper_executor::~looper_executor() {
    shutdown(false);
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();
    } else {
        thread_.join();
    }
    core_->release();
}

void looper_executor::submit(detail::work& w) noexcept {
    {
        const std::lock_guard lock(core_->mutex);
        if (!core_->closed) {
            core_->queue.push(w);
            core_->wake();
            return;
        }
    }
    w.drop();
}

std::size_t looper_executor::shutdown(bool wait) {
    detail::fifo dropped;
    {
        const std::lock_guard lock(core_->mutex);
        core_->closed = true;
        if (!wait) {
            dropped.append(core_->queue);
        }
        core_->wake();
    }
    std::size_t count = 0;
    while (!dropped.empty()) {
        static_cast<detail::work&>(dropped.pop()).drop();
        ++count;
    }
    return count;
}

void looper_executor::join() {
    if (thread_.get_id() == std::this_thread::get_id()) {
        throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                                "coil: looper_executor::join() on its own thread would deadlock");
    }
    std::unique_lock lock(core_->mutex);
    core_->ended.wait(lock, [this] { return core_->over; });
}

} // namespace coil
