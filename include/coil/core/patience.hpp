#pragma once

#include <thread>

namespace coil::detail {

/// Between the attempts of one who waits for a few instructions of another thread: that thread may
/// have lost its processor, perhaps to this one.
class patience {
public:
    void once_more() noexcept {
        if (attempts_ < most_attempts) {
            ++attempts_;
        } else {
            std::this_thread::yield();
        }
    }

private:
    static constexpr int most_attempts = 100;
    int attempts_ = 0;
};

} // namespace coil::detail
