#pragma once

#include <coil/core/list_node.hpp>

namespace coil::detail {

/// A context's ring while it is open. Completions that others post to such a ring would be taken
/// for its own operations', so coil posts to none of them: is_one() tells. Any thread.
class own_ring : list_node<own_ring> {
public:
    own_ring() noexcept = default;
    own_ring(const own_ring&) = delete;
    own_ring& operator=(const own_ring&) = delete;
    ~own_ring() { forget(); }

    /// The ring's descriptor, from right after it was opened to right before it is closed.
    void remember(int fd) noexcept;
    void forget() noexcept;

    [[nodiscard]] static bool is_one(int fd) noexcept;

private:
    friend list_node;

    int fd_ = -1;
};

} // namespace coil::detail
