#pragma once

#include "file.hpp"

#include <cstdint>
#include <ctime>

namespace coil::sim::detail {

/// timerfd_create(2) on the world's clock. Expires once: a periodic timer that is never read would
/// keep a world from coming to its end.
class timer_file final : public file {
public:
    explicit timer_file(machine& of) : file(of, kind::timer), alarm_(make<alarm>()) {
        alarm_->whose = this;
    }
    ~timer_file() override { alarm_->whose = nullptr; }

    /// read(2): the number of expirations since the last one.
    int attempt(op& call) override;
    std::uint32_t events() override;
    /// timerfd_settime(2): 0 or -errno.
    int set(int flags, const ::itimerspec* spec);

private:
    /// What the world's events refer to, because they may occur after the timer has been closed.
    struct alarm final : object {
        timer_file* whose = nullptr;
        std::uint64_t setting = 0; // distinguishes events of earlier settings
    };
    ref<alarm> alarm_;
    std::uint64_t expirations_ = 0;
};

} // namespace coil::sim::detail
