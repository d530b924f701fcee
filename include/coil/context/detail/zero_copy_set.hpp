#pragma once

#include <coil/context/detail/sqe_slot.hpp>
#include <coil/core/detail/list_node.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// A zero-copy send that was started and whose awaiter still exists.
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

    const sqe_slot* of_ = nullptr;
};

/// The sends that a notification may belong to.
///
/// The kernel allocates the notification of a zero-copy send when it reads the SQE. A send in a
/// chain that is cancelled before it starts completes with -ECANCELED and without
/// IORING_CQE_F_MORE, but is still notified (measured on Linux 6.18). By then the await may be over
/// and its memory reused. So a notification is accepted only for an entry in this set whose result
/// had IORING_CQE_F_MORE. Completions with the same user_data arrive in order, so a late
/// notification cannot be mistaken for that of a new entry at the same address.
class zero_copy_set {
public:
    void insert(zero_copy_node& node, const sqe_slot& entry) noexcept {
        node.of_ = &entry;
        node.push_to(bucket(&entry));
    }

    [[nodiscard]] bool awaits_notification(const sqe_slot* entry) noexcept {
        for (const zero_copy_node* node = bucket(entry); node != nullptr; node = node->next) {
            if (node->of_ == entry) {
                return (entry->flags & uring::cqe_flag::more) != 0;
            }
        }
        return false;
    }

private:
    static constexpr unsigned bits = 6;

    zero_copy_node*& bucket(const sqe_slot* entry) noexcept {
        const std::uint64_t spread =
            (reinterpret_cast<std::uintptr_t>(entry) >> 3) * 0x9e3779b97f4a7c15ULL;
        return buckets_[static_cast<std::size_t>(spread >> (64 - bits))];
    }

    std::array<zero_copy_node*, std::size_t{1} << bits> buckets_{};
};

} // namespace coil::detail
