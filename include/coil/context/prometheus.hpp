#pragma once

#include <coil/context/metrics.hpp>

#include <span>
#include <string>
#include <vector>

namespace coil {

/// Distinguishes samples of the same name: `context="0"`.
struct metric_label {
    std::string name;  ///< [a-zA-Z_][a-zA-Z0-9_]*, and not `le`
    std::string value; ///< any UTF-8
};

/// The metrics of one of several contexts.
struct labelled_metrics {
    context_metrics metrics;
    std::vector<metric_label> labels;
};

/// Appends metrics in the Prometheus text exposition format 0.0.4 (content type `text/plain;
/// version=0.0.4`). Every name begins with `coil_`; docs/reference/metrics.md lists them. Times are
/// in seconds.
///
///     std::string page;
///     write_prometheus(page, ctx.metrics());
///
/// The format requires all samples of a name to be together under one header: pass all contexts of
/// a page to one call, each with its own labels. Throws std::invalid_argument for an invalid label
/// name; nothing is appended then.
void write_prometheus(std::string& out, std::span<const labelled_metrics> contexts);

/// The same for a page with a single context.
void write_prometheus(std::string& out, const context_metrics& metrics,
                      std::vector<metric_label> labels = {});

} // namespace coil
