#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coil {

/// The number of contexts worth having: the processors in the calling thread's affinity mask, or
/// fewer if a cgroup's CPU quota is lower (rounded up). At least 1.
[[nodiscard]] unsigned usable_processors();

/// The order in which a runtime pins its contexts to the processors that the process may use. The
/// NUMA nodes are those of /sys/devices/system/node. If they are not known, there is only one.
enum class processor_order {
    ascending, ///< by the kernel's numbers
    close,     ///< node by node: the contexts use as few nodes as possible
    spread,    ///< from each node in turn: the contexts use as many nodes as possible
};

namespace detail {

/// The processors in the calling thread's affinity mask, in ascending order; never empty.
[[nodiscard]] std::vector<int> allowed_processors();

/// The lowest CPU quota, in processors rounded up, of the cgroup named by `membership` (the text of
/// /proc/self/cgroup) below `root` (/sys/fs/cgroup) and of its ancestors; 0 if there is none.
[[nodiscard]] unsigned quota_in_processors(const std::string& root, const std::string& membership);

/// The processors named by a list of the kernel, such as "0-3,8-11\n" (or "\n", for none), in its
/// order; nullopt if it is not such a list.
[[nodiscard]] std::optional<std::vector<int>> parse_processor_list(std::string_view text);

/// The processors of each NUMA node below `root` (/sys/devices/system/node), except nodes without
/// processors. Empty if a file is missing or invalid, or if two nodes have the same processor.
[[nodiscard]] std::vector<std::vector<int>> processors_of_nodes(const std::string& root);

/// `processors` in the given order. If one of them is in none of the nodes, they are left as they
/// are.
[[nodiscard]] std::vector<int> in_order(std::vector<int> processors, processor_order order,
                                        const std::vector<std::vector<int>>& nodes);

} // namespace detail

} // namespace coil
