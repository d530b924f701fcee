#include <coil/context/own_rings.hpp>

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
    listed_ = true;
    before_ = nullptr;
    after_ = first;
    if (first != nullptr) {
        first->before_ = this;
    }
    first = this;
}

void own_ring::forget() noexcept {
    const std::scoped_lock lock(guard);
    if (!listed_) {
        return;
    }
    listed_ = false;
    (before_ != nullptr ? before_->after_ : first) = after_;
    if (after_ != nullptr) {
        after_->before_ = before_;
    }
}

bool own_ring::is_one(int fd) noexcept {
    const std::scoped_lock lock(guard);
    for (const own_ring* ring = first; ring != nullptr; ring = ring->after_) {
        if (ring->fd_ == fd) {
            return true;
        }
    }
    return false;
}

} // namespace coil::detail
