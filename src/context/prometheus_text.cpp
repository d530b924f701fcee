#include "prometheus_text.hpp"

#include <algorithm>
#include <stdexcept>

namespace coil::detail {

namespace {

bool is_label_name(std::string_view name) noexcept {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    return !name.empty() && name != "le" && is_letter(name.front()) &&
           std::all_of(name.begin(), name.end(),
                       [&](char c) { return is_letter(c) || is_digit(c); });
}

} // namespace

std::string label_text(const std::vector<metric_label>& labels) {
    std::string text;
    for (const metric_label& label : labels) {
        if (!is_label_name(label.name)) {
            throw std::invalid_argument("coil: not a valid label name: '" + label.name + "'");
        }
        text += text.empty() ? "" : ",";
        text += label.name + "=\"";
        for (const char c : label.value) {
            if (c == '\n') {
                text += "\\n";
                continue;
            }
            if (c == '\\' || c == '"') {
                text += '\\';
            }
            text += c;
        }
        text += '"';
    }
    return text;
}

void write_header(std::string& out, const metric_family& what, std::string_view type) {
    out.append("# HELP ").append(what.name).append(" ").append(what.help).append("\n");
    out.append("# TYPE ").append(what.name).append(" ").append(type).append("\n");
}

void write_sample(std::string& out, std::string_view name, std::string_view suffix,
                  std::string_view labels, std::string_view value) {
    out.append(name).append(suffix);
    if (!labels.empty()) {
        out.append("{").append(labels).append("}");
    }
    out.append(" ").append(value).append("\n");
}

} // namespace coil::detail
