#include "front_backend.hpp"

#include <cerrno>

namespace coil::sim::detail {

int front_backend::setup(unsigned entries, uring::params& p, mapping& m) noexcept {
    const int error = behind_.setup(entries, p, m);
    params_ = p;
    mapping_ = m;
    return error;
}

int front_backend::enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
                         std::size_t arg_size) noexcept {
    const fault_plan& faults = world_.options.faults;
    if (!refused_ && world_.fault(faults.interrupt_enter, "EINTR of io_uring_enter")) {
        refused_ = true;
        return -EINTR;
    }
    refused_ = false;
    if (to_submit > 1 && world_.fault(faults.queue_full, "the ring consumes fewer entries")) {
        const unsigned taken = fewer(to_submit);
        if (taken < to_submit) { // a short submission does not wait
            return behind_.enter(taken, 0, flags & uring::enter_flag::getevents, nullptr, 0);
        }
    }
    return behind_.enter(to_submit, min_complete, flags, arg, arg_size);
}

/// Returns a random number of entries to consume. It never splits a chain, because the end of a
/// submission ends a chain.
unsigned front_backend::fewer(unsigned to_submit) noexcept {
    const auto* const words = static_cast<const std::uint32_t*>(mapping_.sq);
    const std::uint32_t head = words[params_.sq_off.head / 4];
    const std::uint32_t mask = words[params_.sq_off.ring_mask / 4];
    const std::uint32_t* const array = words + params_.sq_off.array / 4;
    constexpr unsigned links = uring::sqe_flag::io_link | uring::sqe_flag::io_hardlink;
    auto taken = static_cast<unsigned>(world_.random.between(1, to_submit));
    while (taken < to_submit &&
           (mapping_.sqes[array[(head + taken - 1) & mask]].flags & links) != 0) {
        ++taken;
    }
    return taken;
}

} // namespace coil::sim::detail
