#pragma once

namespace coil::detail {

/// A base of what hangs in a list whose head is a plain pointer to the newest. Taking one out needs
/// neither the head nor a search.
template <class Node>
struct list_node {
    Node* next = nullptr;
    Node** link = nullptr; // the pointer that points here; null when in no list

    [[nodiscard]] bool is_linked() const noexcept { return link != nullptr; }

    void push_to(Node*& head) noexcept {
        next = head;
        link = &head;
        if (next != nullptr) {
            next->link = &next;
        }
        head = static_cast<Node*>(this);
    }

    /// It must be in a list.
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
