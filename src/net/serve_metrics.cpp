#include "../context/prometheus_text.hpp"

#include <coil/net/serve_metrics.hpp>

#include <array>
#include <string_view>

namespace coil::net {

namespace {

struct number {
    coil::detail::metric_family what;
    std::string_view type;
    std::uint64_t serve_metrics::* value;
};

// clang-format off
constexpr std::array numbers{
    number{{"coil_serve_connections", "Connections that have not ended."}, "gauge", &serve_metrics::open},
    number{{"coil_serve_accepted_total", "Connections accepted."}, "counter", &serve_metrics::accepted},
    number{{"coil_serve_held_back_total", "Connections that waited because of max_connections."}, "counter", &serve_metrics::held_back},
    number{{"coil_serve_moved_total", "Connections handed over to another context."}, "counter", &serve_metrics::moved},
    number{{"coil_serve_failed_total", "Connections whose handler ended with an exception other than a cancellation."}, "counter", &serve_metrics::failed},
    number{{"coil_serve_idle_ended_total", "Connections cancelled after the idle limit."}, "counter", &serve_metrics::idle_ended},
    number{{"coil_serve_grace_ended_total", "Connections cancelled after the grace period."}, "counter", &serve_metrics::grace_ended},
    number{{"coil_serve_hard_ended_total", "Connections destroyed after the hard deadline."}, "counter", &serve_metrics::hard_ended},
};
// clang-format on

} // namespace

serve_metrics serve_meter::metrics() const noexcept {
    serve_metrics m;
    // First, so that `open` is never negative.
    const std::uint64_t closed = closed_.load(std::memory_order_acquire);
    m.accepted = accepted_.load(std::memory_order_relaxed);
    m.open = m.accepted - closed;
    m.held_back = held_back_.load(std::memory_order_relaxed);
    m.moved = moved_.load(std::memory_order_relaxed);
    m.failed = failed_.load(std::memory_order_relaxed);
    m.idle_ended = idle_ended_.load(std::memory_order_relaxed);
    m.grace_ended = grace_ended_.load(std::memory_order_relaxed);
    m.hard_ended = hard_ended_.load(std::memory_order_relaxed);
    return m;
}

std::string to_string(const serve_metrics& metrics) {
    std::string text = "connections: ";
    const auto add = [&text](std::uint64_t n, std::string_view what) {
        text.append(std::to_string(n)).append(what);
    };
    add(metrics.accepted, " accepted, ");
    add(metrics.open, " open, ");
    add(metrics.held_back, " held back, ");
    add(metrics.moved, " moved, ");
    add(metrics.failed, " failed; ended: ");
    add(metrics.idle_ended, " idle, ");
    add(metrics.grace_ended, " after the grace period, ");
    add(metrics.hard_ended, " at the hard deadline\n");
    return text;
}

void write_prometheus(std::string& out, const serve_metrics& metrics,
                      const std::vector<metric_label>& labels) {
    const std::string text = coil::detail::label_text(labels);
    for (const number& n : numbers) {
        coil::detail::write_header(out, n.what, n.type);
        coil::detail::write_sample(out, n.what.name, "", text, std::to_string(metrics.*n.value));
    }
}

} // namespace coil::net
