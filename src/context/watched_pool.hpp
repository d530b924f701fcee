#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace coil::detail {

/// A pool of threads as the watchdog sees it.
class watched_pool {
public:
    watched_pool() = default;
    watched_pool(const watched_pool&) = delete;
    watched_pool& operator=(const watched_pool&) = delete;

    /// Called by the watchdog's thread: whether every thread that the pool may have is busy, and
    /// calls wait. Nothing if that would have to wait for a lock: a fork() takes the locks of both
    /// in any order.
    [[nodiscard]] virtual std::optional<bool> is_full() const noexcept = 0;
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;

    /// Of the pool, when its first thread is made, and before it is destroyed.
    void begin_watching() noexcept;
    void end_watching() noexcept;

protected:
    ~watched_pool() = default;

private:
    friend class stall_watchdog;

    watched_pool* next_ = nullptr;
    std::int64_t full_since_ns_ = 0;
};

} // namespace coil::detail
