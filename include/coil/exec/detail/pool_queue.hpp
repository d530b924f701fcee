#pragma once

#include <coil/exec/detail/work.hpp>

#include <cstddef>

namespace coil {

class blocking_pool;

namespace detail {

class watched_pool;

/// A submitted call; part of its awaiter.
class pool_job : public work {
public:
    /// The error if no thread could be created for the job, or 0.
    [[nodiscard]] int error() const noexcept { return error_; }

protected:
    explicit pool_job(function f) noexcept : work(f) {}
    ~pool_job() = default;

private:
    friend class pool_queue;
    friend class coil::blocking_pool;

    pool_job* before_ = nullptr;
    pool_job* behind_ = nullptr;
    bool queued_ = false;
    int error_ = 0;
};

/// Reports the error like the exception of a detached task.
void report_no_thread(int error) noexcept;

/// A FIFO queue from which any job can be removed.
class pool_queue {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    void push(pool_job& job) noexcept;
    pool_job& pop() noexcept;
    /// Returns false if the job is not in the queue.
    bool remove(pool_job& job) noexcept;

private:
    pool_job* first_ = nullptr;
    pool_job* last_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace detail

} // namespace coil
