#pragma once

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

    /// Precondition: it is in a list.
    void unlink() noexcept {
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
