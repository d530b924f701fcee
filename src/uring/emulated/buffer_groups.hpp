#pragma once

#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include <sys/uio.h>

namespace coil::uring::detail {

/// Buffers that an application gave in advance: rings in its memory, and those of provide_buffers.
class buffer_groups {
public:
    struct group {
        buf_ring* ring = nullptr; // null: a list
        std::uint16_t mask = 0;
        std::uint16_t head = 0;
        bool incremental = false;
        std::deque<buf> list;

        unsigned available() const noexcept;
        /// The buffer `i` places behind the next.
        buf* at(unsigned i) noexcept;
    };

    group* find(unsigned number) noexcept;
    /// What is wrong with a ring, or 0; its memory is there when it is added.
    int check_ring(const buf_reg& reg) noexcept;
    int add_ring(const buf_reg& reg) noexcept;
    int remove_ring(unsigned number) noexcept;
    int head_of(unsigned number) noexcept;
    int provide(const sqe& entry) noexcept;
    int remove(unsigned number, unsigned count) noexcept;

    /// Says that the group's next `count` buffers were used for `bytes` bytes in all. True when the
    /// last of them stays, for its rest.
    static bool consume(group& g, unsigned count, std::size_t bytes) noexcept;

    template <class F>
    void for_each_buffer(F&& f) {
        for (auto& [number, g] : groups_)
            for (unsigned i = 0; i < g.available(); ++i)
                f(*g.at(i));
    }

private:
    std::unordered_map<std::uint16_t, group> groups_;
};

} // namespace coil::uring::detail
