#include "../context/thread_name.hpp"
#include "simulated_work.hpp"
#include "watched_blocking_pool.hpp"

#include <coil/base/service_thread_start.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/exec/blocking_pool.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sched.h>

namespace coil {

namespace detail {

void pool_queue::push(pool_job& job) noexcept {
    job.before_ = last_;
    job.behind_ = nullptr;
    job.queued_ = true;
    (last_ == nullptr ? first_ : last_->behind_) = &job;
    last_ = &job;
    ++size_;
}

pool_job& pool_queue::pop() noexcept {
    pool_job& job = *first_;
    remove(job);
    return job;
}

bool pool_queue::remove(pool_job& job) noexcept {
    if (!std::exchange(job.queued_, false)) {
        return false;
    }
    (job.before_ == nullptr ? first_ : job.before_->behind_) = job.behind_;
    (job.behind_ == nullptr ? last_ : job.behind_->before_) = job.before_;
    --size_;
    return true;
}

} // namespace detail

namespace {

constinit thread_local const blocking_pool* pool_of_this_thread = nullptr;

blocking_pool_options checked(blocking_pool_options options) {
    options.threads = std::max(options.threads, 1U);
    options.queue = std::max<std::size_t>(options.queue, 1);
    // Clamped, so that adding it to the clock does not overflow.
    options.idle_time = std::clamp<std::chrono::nanoseconds>(
        options.idle_time, std::chrono::nanoseconds(0), std::chrono::hours(24 * 365));
    return options;
}

/// Keeps a waking pool thread from preempting a context in the middle of a turn, which is the main
/// cause of long turns if there are many threads. A scheduling policy that the program has set,
/// which threads inherit, is kept.
void let_others_run_first() noexcept {
    if (::sched_getscheduler(0) == SCHED_OTHER) {
        const ::sched_param none{};
        ::sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
    }
}

} // namespace

/// Lives on its thread's stack; protected by the pool's lock.
struct blocking_pool::worker {
    worker* earlier = nullptr; // the worker that became idle before this one
    worker* later = nullptr;
    detail::pool_job* job = nullptr; // assigned to this worker, which then is no longer idle
    std::condition_variable given;
};

blocking_pool::blocking_pool(blocking_pool_options options)
    : options_(checked(std::move(options))) {}

blocking_pool::~blocking_pool() {
    if (pool_of_this_thread == this) {
        detail::end_with_misuse("a blocking_pool is destroyed by one of its own calls.");
    }
    std::unique_lock lock(mutex_);
    ending_ = true;
    for (worker* w = idle_; w != nullptr; w = w->earlier) {
        w->given.notify_one();
    }
    room_.notify_all();
    while (!queue_.empty()) {
        detail::pool_job& job = queue_.pop();
        lock.unlock();
        job.drop();
        lock.lock();
    }
    ended_.wait(lock, [this] { return threads_ == 0 && waiting_for_room_ == 0; });
    const bool has_ended = has_ended_;
    lock.unlock();
    // Not earlier: the thread of a call that was withdrawn may still be in begin_watching().
    if (watched_ != nullptr) {
        auto* const made = static_cast<watched*>(watched_);
        made->end();
        delete made;
    }
    if (has_ended) {
        ::pthread_join(last_ended_, nullptr);
    }
}

blocking_pool_metrics blocking_pool::metrics() const noexcept {
    const std::scoped_lock lock(mutex_);
    return metrics_locked();
}

/// Called with the lock held.
blocking_pool_metrics blocking_pool::metrics_locked() const noexcept {
    blocking_pool_metrics m;
    m.threads = threads_;
    m.idle_threads = idle_threads_;
    m.queued = std::min(queue_.size(), options_.queue);
    m.waiting = queue_.size() - m.queued + waiting_for_room_;
    m.threads_made = threads_made_;
    m.delayed = delayed_;
    m.full_reports = watched_ != nullptr ? watched_->full_reports() : 0;
    return m;
}

void blocking_pool::submit(detail::pool_job& job) noexcept {
    if (detail::run_simulated(job)) {
        return;
    }
    submit(job, std::unique_lock(mutex_));
}

void blocking_pool::wait_and_submit(detail::pool_job& job) {
    if (detail::run_simulated(job)) {
        return;
    }
    std::unique_lock lock(mutex_);
    if (detail::current_loop == nullptr && pool_of_this_thread != this) {
        ++waiting_for_room_;
        room_.wait(lock, [this] { return queue_.size() < options_.queue || ending_; });
        if (--waiting_for_room_ == 0 && ending_) {
            ended_.notify_all();
        }
    }
    submit(job, std::move(lock));
}

void blocking_pool::submit(detail::pool_job& job, std::unique_lock<std::mutex> lock) noexcept {
    if (ending_) [[unlikely]] {
        lock.unlock();
        job.drop();
        return;
    }
    ++submitted_;
    if (worker* const w = idle_) {
        idle_ = w->earlier;
        if (idle_ != nullptr) {
            idle_->later = nullptr;
        }
        --idle_threads_;
        w->job = &job;
        w->given.notify_one(); // with the lock held, as the worker may end once it sees the job
        return;
    }
    queue_.push(job);
    delayed_ += threads_ >= options_.threads ? 1 : 0;
    if (may_grow()) {
        const bool is_first = watched_ == nullptr;
        lock.unlock();
        if (is_first) {
            begin_watching();
        }
        make_thread();
    }
}

/// Called by the thread that creates the first thread of the pool.
void blocking_pool::begin_watching() noexcept {
    if (auto* const made = new (std::nothrow) watched(*this)) {
        {
            const std::scoped_lock lock(mutex_);
            watched_ = made;
        }
        made->begin();
    }
}

bool blocking_pool::take_back(detail::pool_job& job) noexcept {
    if (detail::current_sim_driver != nullptr) {
        return detail::current_sim_driver->take_back(job);
    }
    const std::scoped_lock lock(mutex_);
    if (!queue_.remove(job)) {
        return false;
    }
    left_queue();
    return true;
}

void blocking_pool::left_queue() noexcept {
    if (waiting_for_room_ > 0) {
        room_.notify_one();
    }
}

/// Called with the lock held when something is queued. If it returns true, the caller must call
/// make_thread(). Only one thread is created at a time, so that submitting many calls costs one
/// creation: a new thread creates the next one while there is more to do.
bool blocking_pool::may_grow() noexcept {
    if (starting_ || idle_threads_ > 0 || threads_ >= options_.threads) {
        return false;
    }
    starting_ = true;
    ++threads_;
    return true;
}

void blocking_pool::make_thread() noexcept {
    ::pthread_t id{};
    int error = 0;
    {
        const detail::service_thread_start inherited;
        error = ::pthread_create(
            &id, nullptr,
            [](void* pool) noexcept -> void* {
                static_cast<blocking_pool*>(pool)->run_thread();
                return nullptr;
            },
            this);
    }
    if (error == 0) {
        return; // the pool may have been destroyed since
    }
    std::unique_lock lock(mutex_);
    starting_ = false;
    --threads_;
    // The other threads execute the queued calls; if there are none, the calls fail.
    while (threads_ == 0 && !queue_.empty()) {
        detail::pool_job& job = queue_.pop();
        left_queue();
        lock.unlock();
        job.error_ = error;
        job.drop();
        lock.lock();
    }
    if (ending_ && threads_ == 0) {
        ended_.notify_all();
    }
}

void blocking_pool::run_thread() noexcept {
    detail::name_this_thread(options_.name);
    let_others_run_first();
    pool_of_this_thread = this;
    worker self;
    std::unique_lock lock(mutex_);
    starting_ = false;
    ++threads_made_;
    while (detail::pool_job* const job = next_job(self, lock)) {
        const bool more = !queue_.empty() && may_grow();
        lock.unlock();
        if (more) {
            make_thread();
        }
        job->run();
        lock.lock();
    }
    --threads_;
    if (!ending_) {
        ::pthread_detach(::pthread_self());
        return;
    }
    // Each thread that ends joins the previous one; the destructor joins the last.
    const ::pthread_t before = std::exchange(last_ended_, ::pthread_self());
    const bool joins = std::exchange(has_ended_, true);
    if (joins) {
        lock.unlock();
        ::pthread_join(before, nullptr);
        lock.lock();
    }
    if (threads_ == 0) {
        ended_.notify_all();
    }
}

/// Returns null if the thread is to end.
detail::pool_job* blocking_pool::next_job(worker& self,
                                          std::unique_lock<std::mutex>& lock) noexcept {
    if (queue_.empty() && detail::frame_cache_overflowed) {
        lock.unlock();
        detail::trim_frame_cache();
        lock.lock();
    }
    if (!queue_.empty()) {
        detail::pool_job& job = queue_.pop();
        left_queue();
        return &job;
    }
    if (ending_) {
        return nullptr;
    }
    self.later = nullptr;
    self.earlier = idle_;
    if (idle_ != nullptr) {
        idle_->later = &self;
    }
    idle_ = &self;
    ++idle_threads_;
    const auto end = std::chrono::steady_clock::now() + options_.idle_time;
    self.given.wait_until(lock, end, [&] { return self.job != nullptr || ending_; });
    if (self.job != nullptr) {
        return std::exchange(self.job, nullptr);
    }
    (self.later == nullptr ? idle_ : self.later->earlier) = self.earlier;
    if (self.earlier != nullptr) {
        self.earlier->later = self.later;
    }
    --idle_threads_;
    return nullptr;
}

/// Called after fork() in the child, whose only thread holds the lock. The queued calls are
/// forgotten: they belong to contexts of the parent.
void blocking_pool::reset_in_child() noexcept {
    queue_ = {};
    delete static_cast<watched*>(
        std::exchange(watched_, nullptr)); // the watchdog of the child does not have it
    idle_ = nullptr;
    threads_ = 0;
    idle_threads_ = 0;
    starting_ = false;
    waiting_for_room_ = 0;
}

blocking_pool& default_blocking_pool() {
    static blocking_pool* const pool = [] {
        auto* const made = new blocking_pool;
        static blocking_pool& forked = *made;
        ::pthread_atfork([] { forked.mutex_.lock(); }, [] { forked.mutex_.unlock(); },
                         [] {
                             forked.reset_in_child();
                             forked.mutex_.unlock();
                         });
        return made;
    }();
    return *pool;
}

namespace {
/// Created before there are other threads. Otherwise the child of a fork() during the
/// initialisation would wait for ever for a thread that it does not have.
[[maybe_unused]] const blocking_pool& made_at_start = default_blocking_pool();
} // namespace

} // namespace coil
