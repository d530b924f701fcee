#include <coil/context/detail/own_rings.hpp>

#include <mutex>

namespace coil::detail {

namespace {

constinit std::mutex guard;
constinit own_ring* first = nullptr;

} // namespace

void own_ring::remember(int fd) noexcept {
    forget();
    const std::scoped_lock lock(guard);
    fd_ = fd;
    push_to(first);
}

void own_ring::forget() noexcept {
    const std::scoped_lock lock(guard);
    if (is_linked()) {
        unlink();
    }
}

bool own_ring::is_one(int fd) noexcept {
    const std::scoped_lock lock(guard);
    for (const own_ring* ring = first; ring != nullptr; ring = ring->next) {
        if (ring->fd_ == fd) {
            return true;
        }
    }
    return false;
}

} // namespace coil::detail
