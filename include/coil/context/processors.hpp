#pragma once

#include <string>
#include <vector>

namespace coil {

/// The number of contexts worth having: the processors in the calling thread's affinity mask, or
/// fewer if a cgroup's CPU quota is lower (rounded up). At least 1.
[[nodiscard]] unsigned usable_processors();

namespace detail {

/// The processors in the calling thread's affinity mask, in ascending order; never empty.
[[nodiscard]] std::vector<int> allowed_processors();

/// The lowest CPU quota, in processors rounded up, of the cgroup named by `membership` (the text of
/// /proc/self/cgroup) below `root` (/sys/fs/cgroup) and of its ancestors; 0 if there is none.
[[nodiscard]] unsigned quota_in_processors(const std::string& root, const std::string& membership);

} // namespace detail

} // namespace coil
