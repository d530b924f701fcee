#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/service_thread_start.hpp>

#include <cerrno>

#include <sched.h>

namespace coil::detail {

/// Keeps this thread on one processor, and restores its affinity when destroyed. What the thread
/// writes first meanwhile, and what the kernel allocates for it, is in the memory of that
/// processor's NUMA node.
class affinity_scope {
public:
    affinity_scope() noexcept = default;
    affinity_scope(const affinity_scope&) = delete;
    affinity_scope& operator=(const affinity_scope&) = delete;
    ~affinity_scope() {
        if (pinned_) {
            processors_before_pinning = outer_;
            ::sched_setaffinity(0, sizeof before_, &before_);
        }
    }

    /// Returns 0 or an errno. At most once.
    [[nodiscard]] int pin(int processor) noexcept {
        ::cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(processor), &one);
        if (::sched_getaffinity(0, sizeof before_, &before_) != 0 ||
            ::sched_setaffinity(0, sizeof one, &one) != 0) {
            return errno;
        }
        pinned_ = true;
        outer_ = coil::detail::exchange(processors_before_pinning, &before_);
        return 0;
    }

private:
    ::cpu_set_t before_{};
    const ::cpu_set_t* outer_ = nullptr;
    bool pinned_ = false;
};

} // namespace coil::detail
