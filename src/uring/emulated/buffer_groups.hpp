#pragma once

#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include <sys/uio.h>

namespace coil::uring::detail {

/// Provided buffers: rings in the application's memory, and classic ones (provide_buffers).
class buffer_groups {
public:
    struct group {
        buf_ring* ring = nullptr; // null: classic
        std::uint16_t mask = 0;
        std::uint16_t head = 0;
        bool incremental = false;
        std::deque<buf> list;

        unsigned available() const noexcept;
        /// The buffer `i` places after the next one.
        buf* at(unsigned i) noexcept;
    };

    group* find(unsigned number) noexcept;
    /// Checks the description of a ring, but not its memory. Returns 0 or -errno; add_ring()
    /// requires 0.
    int check_ring(const buf_reg& reg) noexcept;
    int add_ring(const buf_reg& reg) noexcept;
    int remove_ring(const buf_reg& reg) noexcept;
    int head_of(unsigned number) noexcept;
    int provide(const sqe& entry) noexcept;
    int remove(unsigned number, unsigned count) noexcept;

    /// Marks the group's next `count` buffers as used for `bytes` bytes in total. Returns true if
    /// the last of them remains in the group with its unused part.
    static bool consume(group& g, unsigned count, std::size_t bytes) noexcept;

    template <class F>
    void for_each_buffer(F&& f) {
        for (auto& [number, g] : groups_) {
            for (unsigned i = 0; i < g.available(); ++i) {
                f(*g.at(i));
            }
        }
    }

private:
    std::unordered_map<std::uint16_t, group> groups_;
};

} // namespace coil::uring::detail
