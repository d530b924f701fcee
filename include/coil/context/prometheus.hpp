#pragma once

#include <coil/context/metrics.hpp>

#include <span>
#include <string>
#include <vector>

namespace coil {

/// What tells a sample from others of its name: `context="0"`.
struct metric_label {
    std::string name;  ///< [a-zA-Z_][a-zA-Z0-9_]*, and not `le`
    std::string value; ///< any UTF-8
};

/// The metrics of one of several contexts.
struct labelled_metrics {
    context_metrics metrics;
    std::vector<metric_label> labels;
};

/// Appends metrics in the Prometheus text exposition format 0.0.4 (content type
/// `text/plain; version=0.0.4`), which every monitor of that family reads. Every name begins with
/// `coil_`; docs/reference/metrics.md lists them. Times are in seconds.
///
/// The format wants all samples of a name together, under one header: write all contexts of a page
/// with one call, each with labels of its own. Throws std::invalid_argument when the name of a
/// label is not one; then nothing has been appended.
void write_prometheus(std::string& out, std::span<const labelled_metrics> contexts);

/// The same for the only context of a page.
void write_prometheus(std::string& out, const context_metrics& metrics,
                      std::vector<metric_label> labels = {});

} // namespace coil
