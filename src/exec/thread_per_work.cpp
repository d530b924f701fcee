#include <coil/exec/detail/thread_per_work.hpp>

#include <memory>
#include <system_error>
#include <thread>

namespace coil::detail {

struct thread_per_work::record {
    record(thread_per_work& executor, work& w) noexcept : owner(&executor), what(&w) {}

    thread_per_work* owner; // null: the executor was destroyed on this thread
    work* what;
    record* next = nullptr;
    std::thread thread;

    void run() noexcept {
        mine = this;
        what->run();
        if (owner == nullptr) {
            delete this; // the thread is detached
            return;
        }
        const std::lock_guard lock(owner->mutex_);
        next = owner->ended_;
        owner->ended_ = this;
        if (--owner->running_ == 0) {
            owner->none_left_.notify_all();
        }
    }
};

thread_local thread_per_work::record* thread_per_work::mine = nullptr;

thread_per_work::~thread_per_work() {
    std::unique_lock lock(mutex_);
    if (mine != nullptr && mine->owner == this) {
        mine->owner = nullptr;
        mine->thread.detach();
        --running_;
    }
    wait(lock);
}

void thread_per_work::submit(work& w) {
    auto made = std::make_unique<record>(*this, w);
    record* ended = nullptr;
    {
        std::unique_lock lock(mutex_);
        if (stopped_) {
            lock.unlock();
            w.drop();
            return;
        }
        // The thread is started with the lock held. It needs the lock at its end, so it cannot be
        // joined before made->thread is assigned.
        made->thread = std::thread([r = made.get()] { r->run(); });
        [[maybe_unused]] const record* const its_own = made.release();
        ++running_;
        ended = std::exchange(ended_, nullptr);
    }
    join_all(ended);
}

void thread_per_work::stop() noexcept {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
}

void thread_per_work::join_all(record* ended) noexcept {
    while (ended != nullptr) {
        const std::unique_ptr<record> one(ended);
        ended = one->next;
        one->thread.join(); // the thread has nothing left to do
    }
}

void thread_per_work::wait(std::unique_lock<std::mutex>& lock) noexcept {
    none_left_.wait(lock, [this] { return running_ == 0; });
    record* const ended = std::exchange(ended_, nullptr);
    lock.unlock();
    join_all(ended);
}

void thread_per_work::join() {
    if (mine != nullptr && mine->owner == this) {
        throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                                "coil: join() on a thread of the executor would deadlock");
    }
    std::unique_lock lock(mutex_);
    wait(lock);
}

std::size_t thread_per_work::running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

} // namespace coil::detail
