#pragma once

#include <coil/core/detail/list_node.hpp>

namespace coil::detail {

/// Registers a context's ring while it is open. A context would mistake a completion that is posted
/// to its ring for the completion of one of its own operations, so coil does not post to such
/// rings: is_one() identifies them. May be called from any thread.
class own_ring : list_node<own_ring> {
public:
    own_ring() noexcept = default;
    own_ring(const own_ring&) = delete;
    own_ring& operator=(const own_ring&) = delete;
    ~own_ring() { forget(); }

    /// Called directly after the ring was opened, with its descriptor; forget() is called directly
    /// before the ring is closed.
    void remember(int fd) noexcept;
    void forget() noexcept;

    [[nodiscard]] static bool is_one(int fd) noexcept;

private:
    friend list_node;

    int fd_ = -1;
};

} // namespace coil::detail
