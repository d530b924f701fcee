#include "../context/prometheus_text.hpp"
#include "../context/watched_pool.hpp"

#include <coil/exec/blocking_pool.hpp>

namespace coil {

void write_prometheus(std::string& out, const blocking_pool_metrics& metrics,
                      const std::vector<metric_label>& labels) {
    const std::pair only(detail::pool_figures{.threads = metrics.threads,
                                              .idle_threads = metrics.idle_threads,
                                              .queued = metrics.queued,
                                              .waiting = metrics.waiting,
                                              .threads_made = metrics.threads_made,
                                              .delayed = metrics.delayed,
                                              .full_reports = metrics.full_reports},
                         detail::label_text(labels));
    detail::write_pools(out, std::span(&only, 1));
}

} // namespace coil
