#include "timer_file.hpp"

#include "bytes.hpp"
#include "machine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <poll.h>
#include <sys/timerfd.h>

namespace coil::sim::detail {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

bool is_valid(const ::timespec& time) noexcept {
    return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < second_ns;
}

/// In nanoseconds; `never` for a time that is too late for the clock.
std::int64_t nanoseconds(const ::timespec& time) noexcept {
    return time.tv_sec >= never / second_ns ? never : time.tv_sec * second_ns + time.tv_nsec;
}

} // namespace

std::uint32_t timer_file::events() { return expirations_ > 0 ? POLLIN | POLLRDNORM : 0U; }

int timer_file::attempt(op& call) {
    if (!receives(call.code()) || call.size() < sizeof expirations_) {
        return -EINVAL;
    }
    if (expirations_ == 0) {
        return would_wait;
    }
    const std::uint64_t value = std::exchange(expirations_, 0);
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    for_each_part(call.data, 0, sizeof value, [&](std::byte* to, std::size_t n) {
        std::copy_n(from, n, to);
        from += n;
    });
    return sizeof value;
}

int timer_file::set(int flags, const ::itimerspec* spec) {
    const bool is_periodic =
        spec != nullptr && (spec->it_interval.tv_sec != 0 || spec->it_interval.tv_nsec != 0);
    if (spec == nullptr || (flags & ~TFD_TIMER_ABSTIME) != 0 || is_periodic ||
        !is_valid(spec->it_value)) {
        return spec == nullptr ? -EFAULT : -EINVAL;
    }
    ++alarm_->setting;
    expirations_ = 0;
    const std::int64_t value = nanoseconds(spec->it_value);
    const std::int64_t now = own_machine.world.now();
    const std::int64_t begin = (flags & TFD_TIMER_ABSTIME) != 0 ? 0 : now;
    if (value == 0 || value >= never - begin) {
        return 0; // stopped, or too late for the clock
    }
    own_machine.world.at(
        std::max(begin + value, now), *alarm_,
        [](object& about, std::uint64_t setting, std::uint64_t) {
            auto& a = static_cast<alarm&>(about);
            if (a.whose != nullptr && a.setting == setting) {
                ++a.whose->expirations_;
                a.whose->changed(POLLIN | POLLRDNORM);
            }
        },
        alarm_->setting);
    return 0;
}

} // namespace coil::sim::detail
