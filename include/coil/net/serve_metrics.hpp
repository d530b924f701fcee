#pragma once

#include <coil/context/prometheus.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace coil::net {

/// The metrics of a server, returned by serve_meter::metrics(). For each limit of serve_options, a
/// figure shows whether it was reached. docs/reference/metrics.md explains the figures.
///
/// Each figure is correct by itself, but they are not from the same instant.
struct serve_metrics {
    std::uint64_t accepted = 0;    ///< connections accepted
    std::uint64_t open = 0;        ///< connections that have not ended, including held back ones
    std::uint64_t held_back = 0;   ///< connections that had to wait because of max_connections
    std::uint64_t moved = 0;       ///< connections handed over to another context
    std::uint64_t failed = 0;      ///< handlers that threw anything but a cancellation
    std::uint64_t idle_ended = 0;  ///< connections cancelled after `idle`
    std::uint64_t grace_ended = 0; ///< connections cancelled after `grace`
    std::uint64_t hard_ended = 0;  ///< connections destroyed after `hard_deadline`
};

/// Counts what a server does. Pass it in serve_options::meter and read it from any thread. It is
/// written a few times per connection, never per operation. Several servers may share one.
class serve_meter {
public:
    serve_meter() noexcept = default;
    serve_meter(const serve_meter&) = delete;
    serve_meter& operator=(const serve_meter&) = delete;

    [[nodiscard]] serve_metrics metrics() const noexcept;

    /// Called by the server.
    void count_accepted() noexcept { add(accepted_); }
    void count_closed() noexcept { add(closed_); }
    void count_held_back() noexcept { add(held_back_); }
    void count_moved() noexcept { add(moved_); }
    void count_failed() noexcept { add(failed_); }
    void count_idle_ended() noexcept { add(idle_ended_); }
    void count_grace_ended(std::uint64_t n) noexcept { add(grace_ended_, n); }
    void count_hard_ended(std::uint64_t n) noexcept { add(hard_ended_, n); }

private:
    using total = std::atomic<std::uint64_t>;
    static void add(total& to, std::uint64_t n = 1) noexcept {
        to.fetch_add(n, std::memory_order_relaxed);
    }

    total accepted_{0};
    total closed_{0};
    total held_back_{0};
    total moved_{0};
    total failed_{0};
    total idle_ended_{0};
    total grace_ended_{0};
    total hard_ended_{0};
};

/// One line of human-readable text, which ends with a newline. The format may change.
[[nodiscard]] std::string to_string(const serve_metrics& metrics);

/// Appends the metrics in the Prometheus text format, as write_prometheus() of a context does.
/// Every name begins with `coil_serve_`. Throws std::invalid_argument for an invalid label name.
void write_prometheus(std::string& out, const serve_metrics& metrics,
                      const std::vector<metric_label>& labels = {});

} // namespace coil::net
