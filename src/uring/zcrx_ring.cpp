#include "at_offset.hpp"

#include <coil/uring/probe.hpp>
#include <coil/uring/zcrx_ring.hpp>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

namespace coil::uring {

namespace {

constexpr std::uint32_t zcrx_setup_flags = setup::cqe32 | setup::single_issuer |
                                           setup::defer_taskrun | setup::taskrun_flag |
                                           setup::submit_all | setup::clamp | setup::cqsize;

} // namespace

zcrx_ring::zcrx_ring(const options& wanted, std::unique_ptr<backend> k) : backend_(k.release()) {
    params p{};
    p.flags = zcrx_setup_flags;
    p.cq_entries = wanted.cq_entries;
    backend::mapping m{};
    if (const int error = backend_->setup(wanted.entries, p, m); error < 0) {
        throw std::system_error(
            -error, std::generic_category(),
            error == -EINVAL ? std::string("coil::uring::zcrx_ring: this kernel has no rings with "
                                           "32-byte completions that are posted only inside "
                                           "io_uring_enter (Linux 6.1)")
                             : explain_setup_error(-error));
    }
    using detail::at_offset;
    sqes_ = m.sqes;
    array_ = at_offset<std::uint32_t>(m.sq, p.sq_off.array);
    sq_head_ = at_offset<std::uint32_t>(m.sq, p.sq_off.head);
    sq_tail_ = at_offset<std::uint32_t>(m.sq, p.sq_off.tail);
    sq_flags_ = at_offset<std::uint32_t>(m.sq, p.sq_off.flags);
    sq_mask_ = *at_offset<std::uint32_t>(m.sq, p.sq_off.ring_mask);
    cqes_ = at_offset<zcrx_completion>(m.cq, p.cq_off.cqes);
    cq_head_ = at_offset<std::uint32_t>(m.cq, p.cq_off.head);
    cq_tail_ = at_offset<std::uint32_t>(m.cq, p.cq_off.tail);
    cq_mask_ = *at_offset<std::uint32_t>(m.cq, p.cq_off.ring_mask);
    tail_ = load(sq_head_, std::memory_order_acquire);
    cq_next_ = load(cq_head_, std::memory_order_acquire);
}

zcrx_ring::~zcrx_ring() = default;

int zcrx_ring::enter(unsigned min_complete, const timespec* timeout) noexcept {
    std::atomic_ref<std::uint32_t>(*sq_tail_).store(tail_, std::memory_order_release);
    const std::uint32_t enter_flags = enter_flag::getevents;
    if (timeout == nullptr) {
        return backend_->enter(sq_ready(), min_complete, enter_flags, nullptr, 0);
    }
    getevents_arg arg{};
    arg.ts = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(timeout));
    return backend_->enter(sq_ready(), min_complete, enter_flags | enter_flag::ext_arg, &arg,
                           sizeof arg);
}

} // namespace coil::uring
