#include <coil/context/detail/spread.hpp>
#include <coil/context/parallel.hpp>
#include <coil/context/runtime.hpp>
#include <coil/core/task.hpp>

#include <utility>
#include <vector>

namespace coil {

task<> parallel(std::vector<task<>>&& tasks) {
    return detail::spread(std::move(tasks), detail::spawn_beside{}, detail::discard{});
}

task<> parallel(runtime& contexts, std::vector<task<>>&& tasks) {
    return detail::spread(std::move(tasks), detail::spawn_on{contexts}, detail::discard{});
}

} // namespace coil
