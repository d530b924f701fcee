// In a source file of their own, so that only programs that call them link them.

#include "task_snapshot.hpp"

#include <coil/context/io_context.hpp>
#include <coil/context/runtime.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace coil {

namespace {

std::vector<detail::context_snapshot>
take_all(const std::vector<detail::owned<io_context>>& contexts, std::size_t limit) {
    std::vector<detail::context_snapshot> all;
    all.reserve(contexts.size());
    for (const auto& context : contexts) {
        all.push_back(detail::take_snapshot(context->loop(), limit));
    }
    return all;
}

} // namespace

std::string io_context::dump_tasks(std::size_t limit) {
    const detail::context_snapshot snapshot = detail::take_snapshot(*loop_, limit);
    return detail::to_text({&snapshot, 1});
}

std::string io_context::dump_tasks_json(std::size_t limit) {
    const detail::context_snapshot snapshot = detail::take_snapshot(*loop_, limit);
    return detail::to_json({&snapshot, 1});
}

std::string runtime::dump_tasks(std::size_t limit) {
    return detail::to_text(take_all(contexts_, limit));
}

std::string runtime::dump_tasks_json(std::size_t limit) {
    return detail::to_json(take_all(contexts_, limit));
}

} // namespace coil
