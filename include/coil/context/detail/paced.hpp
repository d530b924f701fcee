#pragma once

#include <cstdint>

namespace coil::detail {

/// Limits visits of all tasks or awaits, which are made in case that one of them has changed, to a
/// part of the time. So the end of many tasks, one by one, takes linear time.
class paced {
public:
    [[nodiscard]] bool is_due(std::int64_t now_ns) const noexcept { return now_ns >= due_ns_; }
    [[nodiscard]] std::int64_t due_ns() const noexcept { return due_ns_; }
    void visited(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
        due_ns_ = end_ns + pause * (end_ns - begin_ns);
    }

private:
    static constexpr std::int64_t pause = 8; // in durations of a visit

    std::int64_t due_ns_ = 0;
};

} // namespace coil::detail
