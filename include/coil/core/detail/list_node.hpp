#pragma once

#include <coil/base/assert.hpp>

#include <type_traits>

namespace coil::detail {

/// Base class of the members of an intrusive list whose head is a plain pointer to the newest
/// member. A member is removed in constant time, without the head.
template <class Node>
struct list_node {
    Node* next = nullptr;
    Node** link = nullptr; // points at the pointer to this node; null when in no list

    [[nodiscard]] bool is_linked() const noexcept { return link != nullptr; }

    void push_to(Node*& head) noexcept {
        next = head;
        link = &head;
        if (next != nullptr) {
            next->link = &next;
        }
        head = static_cast<Node*>(this);
    }

    /// Precondition: `member` is in a list.
    void insert_after(Node& member) noexcept { push_to(static_cast<list_node&>(member).next); }
    void insert_before(Node& member) noexcept { push_to(*static_cast<list_node&>(member).link); }

    /// The next newer member, or null. Precondition: it is in the list of `head`.
    [[nodiscard]] Node* previous(Node* const& head) const noexcept {
        static_assert(std::is_standard_layout_v<list_node>); // so `next` has its address
        return link == &head ? nullptr : static_cast<Node*>(reinterpret_cast<list_node*>(link));
    }

    /// Precondition: it is in a list.
    void unlink() noexcept {
        COIL_ASSERT(is_linked());
        *link = next;
        if (next != nullptr) {
            next->link = link;
        }
        link = nullptr;
    }

private:
    friend Node;
    list_node() noexcept = default;
};

} // namespace coil::detail
