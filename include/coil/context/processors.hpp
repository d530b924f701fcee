#pragma once

#include <string>
#include <vector>

namespace coil {

/// How many contexts are worth having: the processors in this process's affinity mask, or fewer
/// where a cgroup's CPU quota gives less (rounded up). At least 1.
[[nodiscard]] unsigned usable_processors();

namespace detail {

/// The processors in the calling thread's affinity mask, in ascending order; never empty.
[[nodiscard]] std::vector<int> allowed_processors();

/// The CPU quota, in processors rounded up, of the cgroup that `membership` (the text of
/// /proc/self/cgroup) names below `root` (/sys/fs/cgroup), and of those above it; 0: none.
[[nodiscard]] unsigned quota_in_processors(const std::string& root, const std::string& membership);

} // namespace detail

} // namespace coil
