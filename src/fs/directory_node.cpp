#include "directory_table.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

// The directories of a tree, and their paths.

namespace coil::fs::detail {

directory_node::directory_node(directory_node* parent, std::string name, bool follow) noexcept
    : parent_(parent), name_(std::move(name)), depth_(parent == nullptr ? 0 : parent->depth_ + 1),
      follow_(follow), may_be_by_link_(parent != nullptr && (follow || parent->may_be_by_link_)) {
    if (parent != nullptr) {
        directory_table::share(*parent);
    }
}

directory_node::~directory_node() = default;

std::string directory_node::path() const { return path_of(nullptr); }

std::string directory_node::path_of(const char* entry) const {
    const std::size_t last = entry == nullptr ? 0 : std::char_traits<char>::length(entry);
    std::size_t length = last + 1;
    for (const directory_node* n = this; n != nullptr; n = n->parent_) {
        length += n->name_.size() + 1;
    }
    std::string whole;
    whole.resize(length);
    std::size_t at = length; // filled from the end
    const auto put = [&](const char* text, std::size_t size) {
        at -= size;
        std::copy_n(text, size, whole.data() + at);
    };
    if (entry != nullptr) {
        put(entry, last);
    }
    for (const directory_node* n = this; n != nullptr; n = n->parent_) {
        if (at != length && !n->name_.ends_with('/')) {
            put("/", 1);
        }
        put(n->name_.data(), n->name_.size());
    }
    whole.erase(0, at);
    return whole;
}

} // namespace coil::fs::detail
