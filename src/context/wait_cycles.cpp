#include "wait_cycles.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <pthread.h>

namespace coil::detail {

namespace {

using blocked_tasks = std::unordered_map<const remote_child_owner*, const destructor_waits*>;

constinit std::mutex graph_mutex; // protects the graph

/// Never destroyed: contexts of static storage duration may use it while the program ends.
blocked_tasks& graph() {
    static auto* const tasks = new blocked_tasks();
    return *tasks;
}

/// The child of a fork() does not have the threads on which the tasks are blocked.
[[maybe_unused]] const int fork_handler =
    ::pthread_atfork([] { graph_mutex.lock(); }, [] { graph_mutex.unlock(); },
                     [] {
                         graph().clear();
                         graph_mutex.unlock();
                     });

} // namespace

template <class Function>
void destructor_waits::visit_waiting(const reason* cause, Function f) {
    std::vector<const reason*> found;
    const auto add = [&found](const reason* one) {
        if (one != nullptr && std::find(found.begin(), found.end(), one) == found.end()) {
            found.push_back(one);
        }
    };
    add(cause);
    for (std::size_t i = 0; i < found.size(); ++i) {
        const reason* const one = found[i];
        add(one->outer());
        if (one->at_ != nullptr) {
            f(static_cast<const destructor_waits&>(*one->at_));
            add(static_cast<const scope*>(one)->enclosing_);
        }
    }
}

bool wait_cycles::add(const remote_child_owner& task, const destructor_waits& at) noexcept try {
    const std::scoped_lock lock(graph_mutex);
    graph().emplace(&task, &at);
    return true;
} catch (...) {
    return false;
}

void wait_cycles::remove(const remote_child_owner& task) noexcept {
    const std::scoped_lock lock(graph_mutex);
    graph().erase(&task);
}

void wait_cycles::set_cause(destructor_waits::reason& one,
                            const destructor_waits::reason& cause) noexcept {
    const std::scoped_lock lock(graph_mutex);
    if (!destructor_waits::is_because_of(&cause, one)) {
        one.because_of(&cause);
    }
}

wait_cycles::wait_cycles(const destructor_waits& loop) : reached_{&loop} {
    const std::scoped_lock lock(graph_mutex);
    for (std::size_t before = 0; before != reached_.size();) {
        before = reached_.size();
        for (const auto& [task, at] : graph()) {
            if (std::find(reached_.begin(), reached_.end(), at) == reached_.end() && reach(*task)) {
                reached_.push_back(at);
            }
        }
    }
}

bool wait_cycles::contain(const remote_child_owner& task) const { return reach(task); }

/// Whether one of the loops waits for the task.
bool wait_cycles::reach(const remote_child_owner& task) const {
    bool found = false;
    destructor_waits::visit_waiting(&task.kill_request(), [&](const destructor_waits& waiting) {
        found = found || std::find(reached_.begin(), reached_.end(), &waiting) != reached_.end();
    });
    return found;
}

} // namespace coil::detail
