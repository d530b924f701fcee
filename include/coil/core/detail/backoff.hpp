#pragma once

#include <sched.h>

namespace coil::detail {

/// Back-off for a loop that waits until another thread has executed a few instructions. That thread
/// may have been preempted, possibly by this one.
class backoff {
public:
    void once_more() noexcept {
        if (attempts_ < most_attempts) {
            ++attempts_;
        } else {
            ::sched_yield();
        }
    }

private:
    static constexpr int most_attempts = 100;
    int attempts_ = 0;
};

} // namespace coil::detail
