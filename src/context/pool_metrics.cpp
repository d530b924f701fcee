// The metrics of pools of threads, in the Prometheus text format.

#include "prometheus_text.hpp"
#include "stall_watchdog.hpp"
#include "watched_pool.hpp"

#include <array>
#include <string_view>

namespace coil::detail {

namespace {

struct pool_number {
    metric_family what;
    std::string_view type;
    std::uint64_t pool_figures::* value;
};

// clang-format off
constexpr std::array pool_numbers{
    pool_number{{"coil_pool_threads", "Threads of the pool."}, "gauge", &pool_figures::threads},
    pool_number{{"coil_pool_idle_threads", "Threads that have nothing to do."}, "gauge", &pool_figures::idle_threads},
    pool_number{{"coil_pool_queued", "Calls that no thread has started."}, "gauge", &pool_figures::queued},
    pool_number{{"coil_pool_waiting", "Calls that wait for space in the queue."}, "gauge", &pool_figures::waiting},
    pool_number{{"coil_pool_threads_made_total", "Threads that were created."}, "counter", &pool_figures::threads_made},
    pool_number{{"coil_pool_delayed_total", "Calls that found every thread busy."}, "counter", &pool_figures::delayed},
    pool_number{{"coil_pool_full_reports_total", "Times that the watchdog found the pool full for long."}, "counter", &pool_figures::full_reports},
};
// clang-format on

} // namespace

void write_pools(std::string& out,
                 std::span<const std::pair<pool_figures, std::string>> figures_and_labels) {
    for (const pool_number& n : pool_numbers) {
        if (!figures_and_labels.empty()) {
            write_header(out, n.what, n.type);
        }
        for (const auto& [figures, labels] : figures_and_labels) {
            write_sample(out, n.what.name, "", labels, std::to_string(figures.*n.value));
        }
    }
}

void write_pools(std::string& out) {
    std::vector<std::pair<pool_figures, std::string>> all;
    for (pool_figures& pool : stall_watchdog::instance().pools()) {
        std::vector<metric_label> labels{{"pool", pool.name}};
        if (pool.number > 1) { // two series of the same name and labels are an error
            labels.insert(labels.begin(), {"number", std::to_string(pool.number)});
        }
        all.emplace_back(std::move(pool), label_text(labels));
    }
    write_pools(out, all);
}

} // namespace coil::detail
