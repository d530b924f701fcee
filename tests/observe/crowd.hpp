#pragma once

#include "../../src/context/task_capture.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

// For tests of snapshots that are taken in steps.

namespace coil_test {

inline constexpr std::size_t no_limit = 1'000'000;

inline coil::task<> waits_for(coil::event& over) { co_await over.wait(); }

/// Tasks that end when they are asked to.
class crowd {
public:
    coil::event& add() { return *events_.emplace_back(std::make_unique<coil::event>()); }
    [[nodiscard]] std::size_t size() const noexcept { return events_.size(); }
    void end(std::size_t i) { events_[i]->set(); }
    void end_all() {
        for (const auto& each : events_) {
            each->set();
        }
    }

private:
    std::vector<std::unique_ptr<coil::event>> events_;
};

/// The smallest step: 16 tasks.
inline bool takes_a_step(coil::detail::task_capture& capture) {
    return capture.step(std::chrono::nanoseconds(0));
}

inline void count_names(const coil::detail::record_list<coil::detail::task_record>& tasks,
                        std::map<std::string, int>& names) {
    for (const coil::detail::task_record& task : tasks) {
        ++names[std::string(task.name)];
        count_names(task.children, names);
    }
}
inline std::map<std::string, int> names_of(const coil::detail::context_snapshot& snapshot) {
    std::map<std::string, int> names;
    count_names(snapshot.tasks, names);
    for (const coil::detail::group_record& group : snapshot.groups) {
        count_names(group.children, names);
    }
    return names;
}

} // namespace coil_test
