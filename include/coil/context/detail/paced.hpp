#pragma once

#include <cstdint>

namespace coil::detail {

/// Limits how often a shutdown visits all tasks or awaits to find those that have changed: after a
/// visit, the next one is due when eight times its duration has passed. So a shutdown takes linear
/// time even if many tasks end one by one.
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
