#include "at_offset.hpp"
#include "refused_flags.hpp"

#include <coil/uring/ring.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

namespace coil::uring {
namespace {

constexpr unsigned least_entries = 8;

constexpr std::uint32_t impossible_flags = setup::sqe128 | setup::cqe32 | setup::cqe_mixed |
                                           setup::no_mmap | setup::registered_fd_only |
                                           setup::no_sqarray;

// Newest first, and every flag before those that it requires, so that the remaining set stays
// valid.
constexpr std::array give_up_order{
    setup::hybrid_iopoll, setup::defer_taskrun, setup::single_issuer, setup::taskrun_flag,
    setup::coop_taskrun,  setup::submit_all,    setup::attach_wq,     setup::sq_aff,
    setup::sqpoll,        setup::iopoll,        setup::clamp,
};

[[noreturn]] void refuse(int error, const std::string& sentence) {
    throw std::system_error(error, std::generic_category(), sentence);
}

std::uint32_t effective_flags(std::uint32_t wanted, std::uint32_t required) noexcept {
    std::uint32_t all = wanted | required;
    if ((all & setup::sqpoll) != 0) {
        all &= ~(setup::coop_taskrun | setup::taskrun_flag | setup::defer_taskrun) | required;
    } else {
        all &= ~setup::sq_aff | required;
    }
    if ((all & setup::single_issuer) == 0) {
        all &= ~setup::defer_taskrun | required;
    }
    if ((all & (setup::coop_taskrun | setup::defer_taskrun)) == 0) {
        all &= ~setup::taskrun_flag | required;
    }
    return all;
}

std::uint32_t give_up_one(std::uint32_t flags, std::uint32_t required) noexcept {
    for (const std::uint32_t flag : give_up_order) {
        if ((flags & flag) != 0 && (required & flag) == 0) {
            return effective_flags(flags & ~flag, required);
        }
    }
    return flags;
}

ring_options options_for(unsigned entries) {
    ring_options options;
    options.entries = entries;
    return options;
}

ring_options options_for(unsigned entries, const params& p) {
    ring_options options = options_for(entries);
    options.setup_flags = 0;
    options.required_flags = p.flags;
    if ((p.flags & setup::cqsize) != 0) {
        options.cq_entries = p.cq_entries;
    }
    options.sq_thread_cpu = p.sq_thread_cpu;
    options.sq_thread_idle = p.sq_thread_idle;
    options.wq_fd = static_cast<int>(p.wq_fd);
    return options;
}

} // namespace

ring::ring(unsigned entries) : ring(options_for(entries)) {}

ring::ring(unsigned entries, const params& p) : ring(options_for(entries, p)) {}

ring::ring(unsigned entries, const params& p, std::unique_ptr<backend> k)
    : ring(options_for(entries, p), std::move(k)) {}

ring::ring(const ring_options& options) : ring(options, make_linux_backend()) {}

ring::ring(const ring_options& options, std::unique_ptr<backend> k) : backend_(k.release()) {
    set_up(options);
}

ring::~ring() = default;

void ring::set_up(const ring_options& options) {
    if (((options.setup_flags | options.required_flags) & impossible_flags) != 0) {
        refuse(EINVAL, "coil::uring::ring: the options request an unsupported ring layout");
    }
    if (options.entries == 0) {
        refuse(EINVAL, "coil::uring::ring: a ring needs at least one entry");
    }

    std::uint32_t required = options.required_flags;
    if (options.start_disabled) {
        required |= setup::r_disabled;
    }
    if (options.cq_entries != 0) {
        required |= setup::cqsize;
    }
    std::uint32_t flags = effective_flags(options.setup_flags, required);
    unsigned entries = options.entries;
    unsigned cq_entries = options.cq_entries;

    params p{};
    backend::mapping m{};
    for (;;) {
        p = {};
        p.flags = flags;
        p.cq_entries = cq_entries;
        p.sq_thread_cpu = options.sq_thread_cpu;
        p.sq_thread_idle = options.sq_thread_idle;
        if ((flags & setup::attach_wq) != 0) {
            p.wq_fd = static_cast<std::uint32_t>(options.wq_fd);
        }
        const int error = -backend_->setup(entries, p, m);
        if (error == 0) {
            break;
        }
        if (error == EINVAL) {
            const std::uint32_t fewer = give_up_one(flags, required);
            if (fewer != flags) {
                flags = fewer;
                continue;
            }
        }
        if (error == ENOMEM && (entries > least_entries || cq_entries > 2 * least_entries)) {
            entries = std::max(entries / 2, std::min(entries, least_entries));
            cq_entries = std::max(cq_entries / 2, std::min(cq_entries, 2 * least_entries));
            continue;
        }
        refuse(error, error == EINVAL ? detail::explain_refused_flags(*backend_, flags)
                                      : explain_setup_error(error));
    }

    constexpr std::uint32_t needed = feature::nodrop | feature::submit_stable | feature::ext_arg;
    if ((p.features & needed) != needed) {
        refuse(ENOSYS, "the io_uring of this kernel is too old: Linux 5.11 or newer is required");
    }

    setup_flags_ = flags;
    features_ = p.features;
    use_queues(p, m);
    if (options.start_disabled) {
        wait_.open(*backend_);
    }
    opcodes_ = probe_opcodes(*backend_);
}

void ring::use_queues(const params& p, const backend::mapping& m) noexcept {
    using detail::at_offset;
    sqes_ = m.sqes;
    array_ = at_offset<std::uint32_t>(m.sq, p.sq_off.array);
    sq_head_ = at_offset<std::uint32_t>(m.sq, p.sq_off.head);
    sq_tail_ = at_offset<std::uint32_t>(m.sq, p.sq_off.tail);
    sq_flags_ = at_offset<std::uint32_t>(m.sq, p.sq_off.flags);
    sq_dropped_ = at_offset<std::uint32_t>(m.sq, p.sq_off.dropped);
    sq_mask_ = *at_offset<std::uint32_t>(m.sq, p.sq_off.ring_mask);
    sq_entries_ = sq_mask_ + 1;
    cqes_ = at_offset<cqe>(m.cq, p.cq_off.cqes);
    cq_head_ = at_offset<std::uint32_t>(m.cq, p.cq_off.head);
    cq_tail_ = at_offset<std::uint32_t>(m.cq, p.cq_off.tail);
    cq_lost_ = at_offset<std::uint32_t>(m.cq, p.cq_off.overflow);
    cq_mask_ = *at_offset<std::uint32_t>(m.cq, p.cq_off.ring_mask);

    tail_ = acquired_ = sq_head_seen_ = load_acquire(sq_head_);
    cq_next_ = load_acquire(cq_head_);
    for (std::uint32_t i = 0; i < sq_entries_; ++i) {
        array_[i] = i;
    }
}

int ring::wait(std::chrono::nanoseconds timeout) noexcept {
    using namespace std::chrono;
    if (has_completions() || timeout <= nanoseconds::zero()) {
        const int r = has_completions() ? submit() : enter(0, enter_flag::getevents);
        return has_completions() ? 0 : r < 0 ? r : -ETIME;
    }
    // now() + timeout must not overflow.
    timeout = std::min<nanoseconds>(timeout, detail::longest_wait);
    const auto end = now() + timeout;
    for (nanoseconds left = timeout;;) {
        timespec ts{};
        ts.tv_sec = duration_cast<seconds>(left).count();
        ts.tv_nsec = (left % seconds{1}).count();
        const int r = enter(1, 0, &ts);
        if (has_completions()) {
            return 0;
        }
        if (r < 0) {
            return r;
        }
        // Entries were consumed, so the kernel did not report why the wait ended; or it consumed
        // only part of the batch and did not wait at all.
        left = end - now();
        if (left <= nanoseconds::zero()) {
            return -ETIME;
        }
        if (sq_ready() == 0) {
            return -EINTR;
        }
    }
}

int ring::enable() noexcept {
    const int r = backend_->do_register(register_op::enable_rings, nullptr, 0);
    return r < 0 ? r : 0;
}

void ring::register_ring_fd() noexcept { backend_->do_register(register_op::ring_fds, nullptr, 0); }

void ring::unregister_ring_fd() noexcept {
    backend_->do_register(register_op::unregister_ring_fds, nullptr, 0);
}

} // namespace coil::uring
