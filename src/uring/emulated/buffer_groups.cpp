#include "buffer_groups.hpp"

#include <atomic>
#include <bit>
#include <cerrno>
#include <new>

namespace coil::uring::detail {

unsigned buffer_groups::group::available() const noexcept {
    if (ring == nullptr) {
        return static_cast<unsigned>(list.size());
    }
    const std::uint16_t tail =
        std::atomic_ref<std::uint16_t>(ring->tail).load(std::memory_order_acquire);
    return static_cast<std::uint16_t>(tail - head);
}

buf* buffer_groups::group::at(unsigned i) noexcept {
    if (ring == nullptr) {
        return &list[i];
    }
    return ring->bufs() + ((head + i) & mask);
}

buffer_groups::group* buffer_groups::find(unsigned number) noexcept {
    const auto found = groups_.find(static_cast<std::uint16_t>(number));
    return found != groups_.end() ? &found->second : nullptr;
}

int buffer_groups::check_ring(const buf_reg& reg) noexcept {
    constexpr unsigned most = 32768;
    constexpr std::uint64_t page = 4096;
    if (reg.resv[0] != 0 || reg.resv[1] != 0 || reg.resv[2] != 0 ||
        (reg.flags & ~pbuf_ring_flag::inc) != 0) {
        return -EINVAL; // memory allocated by the kernel would have to be mapped from the ring
    }
    if (reg.ring_addr == 0) {
        return -EFAULT;
    }
    if (reg.ring_addr % page != 0 || !std::has_single_bit(reg.ring_entries) ||
        reg.ring_entries > most) {
        return -EINVAL;
    }
    if (const group* g = find(reg.bgid); g != nullptr && (g->ring != nullptr || !g->list.empty())) {
        return -EEXIST;
    }
    return 0;
}

int buffer_groups::add_ring(const buf_reg& reg) noexcept try {
    group g;
    g.ring = reinterpret_cast<buf_ring*>(static_cast<std::uintptr_t>(reg.ring_addr));
    g.mask = static_cast<std::uint16_t>(reg.ring_entries - 1);
    g.incremental = (reg.flags & pbuf_ring_flag::inc) != 0;
    groups_.insert_or_assign(reg.bgid, std::move(g));
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

int buffer_groups::remove_ring(const buf_reg& reg) noexcept {
    if (reg.resv[0] != 0 || reg.resv[1] != 0 || reg.resv[2] != 0 || reg.flags != 0) {
        return -EINVAL;
    }
    const group* g = find(reg.bgid);
    if (g == nullptr) {
        return -ENOENT;
    }
    if (g->ring == nullptr) {
        return -EINVAL;
    }
    groups_.erase(reg.bgid);
    return 0;
}

int buffer_groups::head_of(unsigned number) noexcept {
    const group* g = find(number);
    if (g == nullptr) {
        return -ENOENT;
    }
    return g->ring != nullptr ? g->head : -EINVAL;
}

int buffer_groups::provide(const sqe& entry) noexcept try {
    group& g = groups_[entry.buf_group];
    if (g.ring != nullptr) {
        return -EINVAL;
    }
    for (int i = 0; i < entry.fd; ++i) {
        buf b{};
        b.addr = entry.addr + static_cast<std::uint64_t>(i) * entry.len;
        b.len = entry.len;
        b.bid = static_cast<std::uint16_t>(entry.off + static_cast<unsigned>(i));
        g.list.push_back(b);
    }
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

int buffer_groups::remove(unsigned number, unsigned count) noexcept {
    group* g = find(number);
    if (g == nullptr) {
        return -ENOENT;
    }
    if (g->ring != nullptr) {
        return -EINVAL;
    }
    const unsigned n = count < g->list.size() ? count : static_cast<unsigned>(g->list.size());
    g->list.erase(g->list.begin(), g->list.begin() + n);
    return static_cast<int>(n);
}

bool buffer_groups::consume(group& g, unsigned count, std::size_t bytes) noexcept {
    if (g.ring == nullptr) {
        g.list.erase(g.list.begin(), g.list.begin() + count);
        return false;
    }
    if (!g.incremental) {
        g.head = static_cast<std::uint16_t>(g.head + count);
        return false;
    }
    for (;;) {
        buf& b = *g.at(0);
        const auto used = static_cast<std::uint32_t>(bytes < b.len ? bytes : b.len);
        b.addr += used;
        b.len -= used;
        bytes -= used;
        // A truncated datagram may be longer than all buffers, so an entry of size 0 ends the loop.
        if (b.len != 0 || used == 0) {
            return true;
        }
        ++g.head;
        if (bytes == 0) {
            return false;
        }
    }
}

} // namespace coil::uring::detail
