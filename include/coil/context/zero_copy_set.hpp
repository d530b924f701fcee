#pragma once

#include <coil/context/wait.hpp>
#include <coil/core/list_node.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// A zero-copy send that has been started and whose awaiter still exists.
class zero_copy_node : list_node<zero_copy_node> {
public:
    zero_copy_node() noexcept = default;
    zero_copy_node(zero_copy_node&& /*not started yet*/) noexcept {}
    zero_copy_node& operator=(zero_copy_node&&) = delete;
    ~zero_copy_node() {
        if (is_linked()) {
            unlink();
        }
    }

private:
    friend class zero_copy_set;
    friend list_node;

    const ring_entry* of_ = nullptr;
};

/// Whom a notification may be for.
///
/// The kernel allots the notification of a zero-copy send when it reads the entry. A send in a
/// chain that is cancelled before its turn completes with -ECANCELED and no mark that more will
/// follow, and is notified all the same (measured on Linux 6.18). By then the await may be over and
/// its memory used for something else. So a notification counts only where somebody waits for one:
/// for an entry in this set whose result came with that mark. Completions of one address keep their
/// order, so a late notification cannot be taken for that of a new entry at the same place.
class zero_copy_set {
public:
    void insert(zero_copy_node& node, const ring_entry& entry) noexcept {
        node.of_ = &entry;
        node.push_to(bucket(&entry));
    }

    [[nodiscard]] bool awaits_notification(const ring_entry* entry) noexcept {
        for (const zero_copy_node* node = bucket(entry); node != nullptr; node = node->next) {
            if (node->of_ == entry) {
                return (entry->flags & uring::cqe_flag::more) != 0;
            }
        }
        return false;
    }

private:
    static constexpr unsigned bits = 6;

    zero_copy_node*& bucket(const ring_entry* entry) noexcept {
        const std::uint64_t spread =
            (reinterpret_cast<std::uintptr_t>(entry) >> 3) * 0x9e3779b97f4a7c15ULL;
        return buckets_[static_cast<std::size_t>(spread >> (64 - bits))];
    }

    std::array<zero_copy_node*, std::size_t{1} << bits> buckets_{};
};

} // namespace coil::detail
