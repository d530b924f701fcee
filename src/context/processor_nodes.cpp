// The NUMA nodes of the processors.

#include <coil/context/processors.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace coil::detail {

namespace {

/// More than any kernel has. An invalid file must not make the parser allocate without a limit.
constexpr int most_processors = 1 << 20;

/// Removes a number from the front of the text; -1 if there is none.
int take_number(std::string_view& text) {
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0 || number >= most_processors) {
        return -1;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool take(std::string_view& text, char what) {
    if (!text.starts_with(what)) {
        return false;
    }
    text.remove_prefix(1);
    return true;
}

std::optional<std::vector<int>> read_processor_list(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    return std::getline(file, line) ? parse_processor_list(line) : std::nullopt;
}

bool has_duplicates(const std::vector<std::vector<int>>& nodes) {
    std::vector<int> all;
    for (const std::vector<int>& node : nodes) {
        all.insert(all.end(), node.begin(), node.end());
    }
    std::ranges::sort(all);
    return std::ranges::adjacent_find(all) != all.end();
}

} // namespace

std::optional<std::vector<int>> parse_processor_list(std::string_view text) {
    std::vector<int> all;
    if (text.ends_with('\n')) {
        text.remove_suffix(1);
    }
    if (text.empty()) {
        return all;
    }
    do {
        const int first = take_number(text);
        const int last = take(text, '-') ? take_number(text) : first;
        if (first < 0 || last < first || all.size() > most_processors) {
            return std::nullopt;
        }
        for (int i = first; i <= last; ++i) {
            all.push_back(i);
        }
    } while (take(text, ','));
    return text.empty() ? std::optional(std::move(all)) : std::nullopt;
}

std::vector<std::vector<int>> processors_of_nodes(const std::string& root) {
    // The list of nodes has the format of a list of processors.
    const std::optional<std::vector<int>> online = read_processor_list(root + "/online");
    if (!online) {
        return {};
    }
    std::vector<std::vector<int>> nodes;
    for (const int node : *online) {
        std::optional<std::vector<int>> processors =
            read_processor_list(root + "/node" + std::to_string(node) + "/cpulist");
        if (!processors) {
            return {};
        }
        if (!processors->empty()) { // a node may have only memory
            nodes.push_back(*std::move(processors));
        }
    }
    return has_duplicates(nodes) ? std::vector<std::vector<int>>() : nodes;
}

std::vector<int> in_order(std::vector<int> processors, processor_order order,
                          const std::vector<std::vector<int>>& nodes) {
    // The same nodes without the processors that are not available.
    std::vector<std::vector<int>> available;
    std::size_t count = 0;
    std::size_t largest = 0;
    for (const std::vector<int>& node : nodes) {
        std::vector<int>& here = available.emplace_back();
        std::ranges::copy_if(node, std::back_inserter(here), [&](int processor) {
            return std::ranges::find(processors, processor) != processors.end();
        });
        count += here.size();
        largest = std::max(largest, here.size());
    }
    if (order == processor_order::ascending || count != processors.size()) {
        return processors;
    }
    processors.clear();
    if (order == processor_order::close) {
        for (const std::vector<int>& node : available) {
            processors.insert(processors.end(), node.begin(), node.end());
        }
        return processors;
    }
    for (std::size_t i = 0; i < largest; ++i) {
        for (const std::vector<int>& node : available) {
            if (i < node.size()) {
                processors.push_back(node[i]);
            }
        }
    }
    return processors;
}

} // namespace coil::detail
