#pragma once

#include "../context/waiting_threads.hpp"
#include "../context/watched_pool.hpp"

#include <coil/exec/blocking_pool.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace coil {

/// The pool as the watchdog and the detection of deadlocks see it.
class blocking_pool::watched final : public detail::watched_pool, detail::waiting_threads {
public:
    explicit watched(const blocking_pool& pool) noexcept : pool_(pool) {}

    void begin() noexcept {
        begin_watching();
        enter_list();
    }
    void end() noexcept {
        leave_list();
        end_watching();
    }

    [[nodiscard]] std::optional<state> now_waiting() const noexcept override {
        const std::unique_lock lock(pool_.mutex_, std::try_to_lock);
        if (!lock.owns_lock() || pool_.starting_ || pool_.ending_ || !pool_.queue_.empty() ||
            pool_.waiting_for_room_ > 0 || pool_.idle_threads_ != pool_.threads_) {
            return std::nullopt;
        }
        return state{.threads = pool_.threads_, .changes = pool_.submitted_};
    }

    [[nodiscard]] std::optional<bool> is_full() const noexcept override {
        const std::unique_lock lock(pool_.mutex_, std::try_to_lock);
        if (!lock.owns_lock()) {
            return std::nullopt;
        }
        return !pool_.queue_.empty() && pool_.threads_ >= pool_.options_.threads;
    }
    [[nodiscard]] const std::string& name() const noexcept override { return pool_.options_.name; }
    [[nodiscard]] std::optional<detail::pool_figures> figures() const override {
        const std::unique_lock lock(pool_.mutex_, std::try_to_lock);
        if (!lock.owns_lock()) {
            return std::nullopt;
        }
        const blocking_pool_metrics m = pool_.metrics_locked();
        return detail::pool_figures{.name = name(),
                                    .threads = m.threads,
                                    .idle_threads = m.idle_threads,
                                    .queued = m.queued,
                                    .waiting = m.waiting,
                                    .threads_made = m.threads_made,
                                    .delayed = m.delayed,
                                    .full_reports = m.full_reports};
    }

private:
    const blocking_pool& pool_;
};

} // namespace coil
