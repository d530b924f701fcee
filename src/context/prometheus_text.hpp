#pragma once

#include <coil/context/prometheus.hpp>

#include <string>
#include <string_view>
#include <vector>

// The lines of the Prometheus text exposition format.
namespace coil::detail {

struct metric_family {
    std::string_view name;
    std::string_view help;
};

/// `a="x",b="y"`; throws std::invalid_argument for an invalid name.
[[nodiscard]] std::string label_text(const std::vector<metric_label>& labels);
void write_header(std::string& out, const metric_family& what, std::string_view type);
void write_sample(std::string& out, std::string_view name, std::string_view suffix,
                  std::string_view labels, std::string_view value);

} // namespace coil::detail
