#pragma once

#include <coil/context/prometheus.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace coil {

/// A snapshot of a pool's state.
struct blocking_pool_metrics {
    unsigned threads = 0;      ///< existing threads, including those being created
    unsigned idle_threads = 0; ///< threads that have nothing to do
    std::size_t queued = 0;    ///< calls that no thread has started
    std::size_t waiting = 0;   ///< calls that wait for space in the queue
    /// The number of threads created so far. If it keeps growing, idle_time is too short.
    std::size_t threads_made = 0;
    /// The number of calls so far that found every thread busy and the number of threads at its
    /// maximum. If it keeps growing, use more threads.
    std::uint64_t delayed = 0;
    /// How often the watchdog has reported that calls waited longer than
    /// watchdog_options::pool_delay. Counted only while a context is watched.
    std::uint64_t full_reports = 0;
};

/// Appends the metrics in the Prometheus text format, like write_prometheus() of a context. Every
/// name begins with `coil_pool_`. Throws std::invalid_argument for an invalid label name. The page
/// of an admin socket contains them for each pool, labelled `pool="NAME"`.
void write_prometheus(std::string& out, const blocking_pool_metrics& metrics,
                      const std::vector<metric_label>& labels = {});

} // namespace coil
