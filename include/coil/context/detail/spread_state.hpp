#pragma once

#include <coil/core/inplace_stop_token.hpp>

#include <atomic>
#include <exception>
#include <utility>

namespace coil::detail {

/// The shared state of tasks that end together: their stop source and the first error. Shared by
/// the awaiting task and all of them, because any of them may be destroyed first.
class spread_state {
public:
    class owner {
    public:
        owner() : group_(new spread_state) {}
        owner(const owner& other) noexcept : group_(other.group_) {
            group_->owners_.fetch_add(1, std::memory_order_relaxed);
        }
        owner& operator=(const owner&) = delete;
        ~owner() {
            if (group_->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                delete group_;
            }
        }
        spread_state* operator->() const noexcept { return group_; }

    private:
        spread_state* group_;
    };

    void stop() noexcept { stop_.request_stop(); }
    [[nodiscard]] inplace_stop_token token() const noexcept { return stop_.get_token(); }

    /// May be called from any thread. Keeps the first error and stops the other tasks.
    void fail(std::exception_ptr error) noexcept {
        if (!failed_.exchange(true, std::memory_order_acq_rel)) {
            error_ = std::move(error);
        }
        stop();
    }
    [[nodiscard]] bool has_failed() const noexcept {
        return failed_.load(std::memory_order_relaxed);
    }
    /// Called when all have been joined.
    void rethrow() const {
        if (error_) {
            std::rethrow_exception(error_);
        }
    }

private:
    spread_state() = default;
    ~spread_state() = default;

    inplace_stop_source stop_;
    std::exception_ptr error_;
    std::atomic<bool> failed_{false};
    std::atomic<unsigned> owners_{1};
};

} // namespace coil::detail
