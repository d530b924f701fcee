#include "worker_pool.hpp"

#include <coil/base/service_thread_start.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <system_error>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::uring::detail {
namespace {

constexpr std::chrono::seconds idle_time{5}; // a thread without work ends after this time
constexpr unsigned max_unbounded = 1024;

unsigned limit_for_files() noexcept {
    const unsigned processors = std::thread::hardware_concurrency();
    return std::clamp(4 * processors, 8U, 64U);
}

/// A signal that is otherwise unused, with an empty handler: it ends system calls with EINTR.
int interrupting_signal() noexcept {
    static const int chosen = [] {
        for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
            struct sigaction old{};
            if (::sigaction(signal, nullptr, &old) != 0 || old.sa_handler != SIG_DFL ||
                (old.sa_flags & SA_SIGINFO) != 0) {
                continue;
            }
            struct sigaction ours{};
            ours.sa_handler = [](int) {};
            if (::sigaction(signal, &ours, nullptr) == 0) {
                return signal;
            }
        }
        return 0;
    }();
    return chosen;
}

void pause_shortly() noexcept {
    const std::timespec pause{0, 10'000};
    ::nanosleep(&pause, nullptr);
}

} // namespace

void worker_pool::stop() noexcept {
    std::unique_lock lock(guard_);
    ending_ = true;
    for (worker_class* l : {&bounded_, &unbounded_}) {
        while (l->first != nullptr) {
            unlink(*l, *l->first);
        }
        l->work.notify_all();
    }
    while (bounded_.threads + unbounded_.threads != 0) {
        for (worker_job* job = running_; job != nullptr; job = job->next) {
            job->cancelled.store(true);
            if (const int signal = interrupting_signal(); signal != 0) {
                ::pthread_kill(job->thread, signal);
            }
        }
        gone_.wait_for(lock, std::chrono::milliseconds(1));
    }
}

bool worker_pool::start_thread(worker_class& l) noexcept {
    const coil::detail::service_thread_start inherited(interrupting_signal());
    try {
        std::thread([this, &l] { serve(l); }).detach();
        ++l.threads;
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

int worker_pool::submit(worker_job& job) noexcept {
    job.cancelled.store(false, std::memory_order_relaxed);
    job.sleeper.store(0, std::memory_order_relaxed);
    const std::scoped_lock lock(guard_);
    worker_class& l = class_of(job);
    if (l.limit == 0) {
        l.limit = job.unbounded ? max_unbounded : limit_for_files();
    }
    job.queued = l.idle <= l.queued && (l.threads >= l.limit || !start_thread(l));
    if (job.queued && l.threads == 0) {
        return -EAGAIN;
    }
    job.at = worker_job::step::queued;
    job.next = nullptr;
    job.previous = l.last;
    (l.last != nullptr ? l.last->next : l.first) = &job;
    l.last = &job;
    ++l.queued;
    wake_one(l);
    return 0;
}

/// Wakes one thread at a time; each wakes the next if work is left. Calls that do not block are
/// thus executed by one thread with the fewest switches; calls that block get as many threads as
/// they need.
void worker_pool::wake_one(worker_class& l) noexcept {
    if (!l.waking && l.idle != 0) {
        l.waking = true;
        l.work.notify_one();
    }
}

void worker_pool::unlink(worker_class& l, worker_job& job) noexcept {
    (job.previous != nullptr ? job.previous->next : l.first) = job.next;
    (job.next != nullptr ? job.next->previous : l.last) = job.previous;
    job.at = worker_job::step::idle;
    --l.queued;
}

void worker_pool::add_running(worker_job& job) noexcept {
    job.previous = nullptr;
    job.next = running_;
    if (running_ != nullptr) {
        running_->previous = &job;
    }
    running_ = &job;
}

void worker_pool::remove_running(worker_job& job) noexcept {
    (job.previous != nullptr ? job.previous->next : running_) = job.next;
    if (job.next != nullptr) {
        job.next->previous = job.previous;
    }
}

bool worker_pool::withdraw(worker_job& job) noexcept {
    const std::scoped_lock lock(guard_);
    if (job.at != worker_job::step::queued) {
        return false;
    }
    unlink(class_of(job), job);
    return true;
}

void worker_pool::interrupt(worker_job& job) noexcept {
    job.cancelled.store(true);
    const std::scoped_lock lock(guard_);
    if (job.at == worker_job::step::running) {
        if (const int signal = interrupting_signal(); signal != 0) {
            ::pthread_kill(job.thread, signal);
        }
    }
}

bool worker_pool::interrupt_now(worker_job& job) noexcept {
    constexpr int max_checks = 1000;
    constexpr int checks_per_signal = 20; // a signal may arrive before the system call begins
    for (int i = 0; i < max_checks && job.at != worker_job::step::idle; ++i) {
        if (i % checks_per_signal == 0) {
            interrupt(job);
        }
        pause_shortly();
    }
    return job.at == worker_job::step::idle;
}

void worker_pool::wait_until_asleep(const worker_job& job) noexcept {
    if (job.queued) {
        return;
    }
    constexpr int max_checks = 1000;
    for (int i = 0; i < max_checks; ++i) {
        if (const int thread = job.sleeper.load(); thread != 0) {
            if (job.at == worker_job::step::idle) {
                return;
            }
            char text[64];
            std::snprintf(text, sizeof text, "/proc/self/task/%d/stat", thread);
            const int fd = ::open(text, O_RDONLY | O_CLOEXEC);
            if (fd < 0) {
                return;
            }
            char stat[128];
            const ssize_t n = ::read(fd, stat, sizeof stat - 1);
            ::close(fd);
            stat[n > 0 ? n : 0] = 0;
            // The state follows the command name, which is in parentheses and may contain some
            // itself.
            const char* const name_end = std::strrchr(stat, ')');
            if (name_end == nullptr || name_end[1] == 0 || name_end[2] == 'S') {
                return;
            }
        }
        pause_shortly();
    }
}

worker_job* worker_pool::take_finished() noexcept {
    worker_job* newest = finished_.exchange(nullptr, std::memory_order_acquire);
    worker_job* oldest = nullptr;
    while (newest != nullptr) {
        worker_job* const next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

void worker_pool::serve(worker_class& l) noexcept {
    std::unique_lock lock(guard_);
    // The previous job. It is handed back when the next one is taken, so that the lock is acquired
    // once for both.
    worker_job* done = nullptr;
    for (;;) {
        worker_job* const job = take(l);
        if (job == nullptr && done == nullptr) {
            if (ending_ || !wait_for_work(l, lock)) {
                break;
            }
            continue;
        }
        lock.unlock();
        if (done != nullptr) {
            finish(*done);
        }
        if (job != nullptr) {
            // A signal meant for the previous job may still arrive.
            do {
                job->result = job->run(*job);
            } while (job->result == -EINTR && !job->cancelled.load());
        }
        lock.lock();
        if (job != nullptr) {
            remove_running(*job);
            job->at = worker_job::step::idle; // from here on the job must not be interrupted
        }
        done = job;
    }
    --l.threads;
    if (ending_) {
        gone_.notify_all();
    }
}

worker_job* worker_pool::take(worker_class& l) noexcept {
    worker_job* const job = l.first;
    if (job == nullptr) {
        return nullptr;
    }
    unlink(l, *job);
    job->at = worker_job::step::running;
    job->thread = ::pthread_self();
    add_running(*job);
    if (l.first != nullptr) {
        wake_one(l);
    }
    return job;
}

/// Returns false if no work arrived for a long time.
bool worker_pool::wait_for_work(worker_class& l, std::unique_lock<std::mutex>& lock) noexcept {
    ++l.idle;
    const bool late = l.work.wait_for(lock, idle_time) == std::cv_status::timeout;
    --l.idle;
    l.waking = false;
    return !late || l.first != nullptr;
}

/// Hands the job back to the pool's owner.
void worker_pool::finish(worker_job& job) noexcept {
    worker_job* head = finished_.load(std::memory_order_relaxed);
    do {
        job.next = head;
    } while (!finished_.compare_exchange_weak(head, &job, std::memory_order_release,
                                              std::memory_order_relaxed));
    if (head == nullptr) {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t n = ::write(wake_fd_, &one, sizeof one);
    }
}

} // namespace coil::uring::detail
