#include "emulation.hpp"

#include "../system_calls.hpp"

#include <coil/uring/syscall.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <new>

// The queues: creation, entering, waiting.

namespace coil::uring::detail {
namespace {

enum : unsigned { head, tail, mask, entries, flags, dropped, lost, queue_flags, words };

std::uint32_t load(std::uint32_t* word) noexcept {
    return std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire);
}
void store(std::uint32_t* word, std::uint32_t value) noexcept {
    std::atomic_ref<std::uint32_t>(*word).store(value, std::memory_order_release);
}

constexpr unsigned most_entries = 32768;

constexpr std::uint32_t known_setup =
    setup::cqsize | setup::clamp | setup::r_disabled | setup::submit_all | setup::coop_taskrun |
    setup::taskrun_flag | setup::single_issuer | setup::defer_taskrun;

constexpr std::uint32_t known_enter =
    enter_flag::getevents | enter_flag::ext_arg | enter_flag::abs_timer | enter_flag::no_iowait;

struct queue_sizes {
    std::uint32_t sq_entries = 0;
    std::uint32_t cq_entries = 0;
};

/// Checks the parameters of io_uring_setup(2) and computes the sizes. Returns 0 or -errno.
int check_setup(unsigned wanted, const params& p, queue_sizes& sizes) noexcept {
    if ((p.flags & ~known_setup) != 0 || p.resv[0] != 0 || p.resv[1] != 0 || p.resv[2] != 0) {
        return -EINVAL;
    }
    if ((p.flags & setup::defer_taskrun) != 0 && (p.flags & setup::single_issuer) == 0) {
        return -EINVAL;
    }
    if ((p.flags & setup::taskrun_flag) != 0 &&
        (p.flags & (setup::coop_taskrun | setup::defer_taskrun)) == 0) {
        return -EINVAL;
    }
    const bool clamp = (p.flags & setup::clamp) != 0;
    if (wanted == 0 || (wanted > most_entries && !clamp)) {
        return -EINVAL;
    }
    const std::uint32_t sq_entries = std::bit_ceil(std::min(wanted, most_entries));
    std::uint32_t cq_entries = 2 * sq_entries;
    if ((p.flags & setup::cqsize) != 0) {
        if (p.cq_entries == 0 || (p.cq_entries > 2 * most_entries && !clamp)) {
            return -EINVAL;
        }
        cq_entries = std::bit_ceil(std::min(p.cq_entries, 2 * most_entries));
        if (cq_entries < sq_entries) {
            return -EINVAL;
        }
    }
    sizes = {sq_entries, cq_entries};
    return 0;
}

} // namespace

emulation::~emulation() {
    for (const auto& r : all_) {
        if (r->held_file_ != nullptr) {
            files_.release(r->held_file_);
        }
        if (r->held_file_in_ != nullptr) {
            files_.release(r->held_file_in_);
        }
        r->held_file_ = r->held_file_in_ = nullptr;
    }
}

int emulation::setup(unsigned wanted, params& p, backend::mapping& m) noexcept try {
    queue_sizes sizes;
    if (const int error = check_setup(wanted, p, sizes); error != 0) {
        return error;
    }
    if (const int error = world_.open_world(); error != 0) {
        return error;
    }
    allocate_queues(sizes.sq_entries, sizes.cq_entries);
    setup_flags_ = p.flags;
    disabled_ = (p.flags & setup::r_disabled) != 0;
    if (!disabled_ && (p.flags & setup::single_issuer) != 0) {
        owner_ = number_this_thread();
    }
    if (!disabled_) {
        world_.entered_by_owner();
    }
    describe_queues(p);
    m = {sq_, sq_, sqes_.get()};
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

/// Both queues are in one allocation, as feature::single_mmap requires: the submission queue first.
void emulation::allocate_queues(std::uint32_t sq_entries, std::uint32_t cq_entries) {
    constexpr unsigned words_per_cqe = sizeof(cqe) / sizeof(std::uint32_t);
    const std::uint32_t cq_begin = (words + sq_entries + 3) & ~std::uint32_t{3};
    const std::size_t cq_words = words + std::size_t{cq_entries} * words_per_cqe;
    queues_ = std::make_unique<std::uint32_t[]>(cq_begin + cq_words);
    sq_ = queues_.get();
    cq_ = sq_ + cq_begin;
    sqes_ = std::make_unique<sqe[]>(sq_entries);
    hash_.assign(256, nullptr);
    constexpr std::size_t reserve = 32; // lets a ring make progress without memory
    all_.reserve(4 * reserve);
    while (all_.size() < reserve) {
        all_.push_back(world_.make_request());
        all_.back()->queued_ = free_;
        free_ = all_.back().get();
    }
    cqes_ = reinterpret_cast<cqe*>(cq_ + words);
    sq_entries_ = sq_entries;
    cq_entries_ = cq_entries;
    *sq_word(mask) = sq_entries - 1;
    *sq_word(entries) = sq_entries;
    *cq_word(mask) = cq_entries - 1;
    *cq_word(entries) = cq_entries;
}

/// Fills the parameters that io_uring_setup(2) returns.
void emulation::describe_queues(params& p) const noexcept {
    p.sq_entries = sq_entries_;
    p.cq_entries = cq_entries_;
    p.features = feature::single_mmap | feature::nodrop | feature::submit_stable |
                 feature::rw_cur_pos | feature::fast_poll | feature::poll_32bits |
                 feature::ext_arg | feature::cqe_skip | feature::linked_file |
                 feature::recvsend_bundle | feature::min_timeout | feature::no_iowait;
    constexpr std::uint32_t word = sizeof(std::uint32_t);
    p.sq_off = {head * word,
                tail * word,
                mask * word,
                entries * word,
                flags * word,
                dropped * word,
                words * word,
                0,
                0};
    const auto cq_begin = static_cast<std::uint32_t>(cq_ - sq_);
    const auto cq_word_at = [&](std::uint32_t i) { return (cq_begin + i) * word; };
    p.cq_off = {cq_word_at(head),
                cq_word_at(tail),
                cq_word_at(mask),
                cq_word_at(entries),
                cq_word_at(lost),
                cq_word_at(words),
                cq_word_at(queue_flags),
                0,
                0};
}

int emulation::enter(unsigned to_submit, unsigned min_complete, unsigned flag_bits, const void* arg,
                     std::size_t size) noexcept {
    if ((flag_bits & ~known_enter) != 0) {
        return -EINVAL;
    }
    if (disabled_) {
        return -EBADFD;
    }
    if (owner_ != 0 && owner_ != number_this_thread()) [[unlikely]] {
        return -EEXIST;
    }

    int submitted = 0;
    if (to_submit != 0) {
        submitted = submit_sqes(to_submit);
        if (submitted != static_cast<int>(to_submit)) {
            announce_pending();
            return submitted;
        }
    }
    int waited = 0;
    if ((flag_bits & enter_flag::getevents) != 0) {
        waited = wait_for(std::min(min_complete, cq_entries_), to_submit, flag_bits, arg, size);
    }
    announce_pending();
    return submitted != 0 ? submitted : waited;
}

/// Sets the flags that make the ring's owner enter (IORING_SQ_TASKRUN, IORING_SQ_CQ_OVERFLOW): the
/// emulation posts completions only inside enter().
void emulation::announce_pending() noexcept {
    std::uint32_t bits = overflow_.empty() ? 0 : sq_flag::cq_overflow;
    if ((pending_ != 0 || !timers_.empty()) && (setup_flags_ & setup::taskrun_flag) != 0) {
        bits |= sq_flag::taskrun;
    }
    if (*sq_word(flags) != bits) {
        store(sq_word(flags), bits);
    }
}

std::uint32_t emulation::unread() const noexcept {
    return cq_tail_ - load(cq_word(head)) + static_cast<std::uint32_t>(overflow_.size());
}

int emulation::poll_world(std::int64_t deadline) noexcept {
    const int result = world_.wait(std::min(deadline, timers_.deadline()));
    run_due();
    expire();
    if (!counted_.empty()) [[unlikely]] {
        end_counted();
    }
    return result;
}

/// Reads the argument of an enter that waits. Returns 0 or -errno.
int emulation::read_limits(unsigned flag_bits, const void* arg, std::size_t size,
                           wait_limits& limits) noexcept {
    if ((flag_bits & enter_flag::ext_arg) == 0) {
        return arg != nullptr ? -EINVAL : 0;
    }
    if (size != sizeof(getevents_arg)) {
        return -EINVAL;
    }
    if (arg == nullptr) {
        return -EFAULT;
    }
    const auto& given = *static_cast<const getevents_arg*>(arg);
    if (given.sigmask != 0) {
        return -EINVAL; // only the kernel can change the signal mask and wait in one step
    }
    if (given.ts != 0) {
        const auto& ts = *reinterpret_cast<const timespec*>(static_cast<std::uintptr_t>(given.ts));
        if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= 1'000'000'000) {
            return -EINVAL;
        }
        limits.deadline = span_of(ts);
        if ((flag_bits & enter_flag::abs_timer) == 0) {
            limits.deadline = saturating_add(limits.deadline, world_.now_ns());
        }
    }
    if (given.min_wait_usec != 0) {
        limits.minimum = world_.now_ns() + std::int64_t{given.min_wait_usec} * 1000;
    }
    return 0;
}

int emulation::wait_for(unsigned min_complete, unsigned submitted, unsigned flag_bits,
                        const void* arg, std::size_t size) noexcept {
    constexpr std::int64_t never = emulated_backend::never;
    wait_limits limits;
    if (const int error = read_limits(flag_bits, arg, size, limits); error != 0) {
        return error;
    }
    const std::int64_t deadline = limits.deadline;
    std::int64_t minimum = limits.minimum;
    if (!overflow_.empty()) {
        flush_overflow();
    }
    // Available completions satisfy the wait. Pending requests are polled nevertheless, so that a
    // busy ring does not starve them; but because polling is expensive, calls that submit several
    // entries and wait poll only every eighth time.
    constexpr unsigned max_blind = 8;
    if (unread() >= min_complete) {
        if (min_complete != 0 && submitted > 1 && ++satisfied_ < max_blind) {
            return 0;
        }
        satisfied_ = 0;
        poll_world(INT64_MIN);
        return 0;
    }
    satisfied_ = 0;
    const std::uint64_t expired = timeouts_expired_;
    for (;;) {
        const int result = poll_world(minimum != 0 ? std::min(minimum, deadline) : deadline);
        if (!overflow_.empty()) {
            flush_overflow();
        }
        const std::uint32_t found = unread();
        if (found >= min_complete || timeouts_expired_ != expired) {
            return 0;
        }
        if (result == -EINTR) {
            return found != 0 ? 0 : -EINTR;
        }
        if (deadline == never && minimum == 0) {
            continue;
        }
        const std::int64_t now = world_.now_ns();
        if (now >= deadline) {
            return found != 0 ? 0 : -ETIME;
        }
        if (minimum != 0 && now >= minimum) {
            if (found != 0) {
                return 0;
            }
            minimum = 0;
            min_complete = 1;
        }
    }
}

// ---- completions

void emulation::post(std::uint64_t user_data, int result, std::uint32_t cqe_flags) noexcept {
    if (cq_tail_ - cq_head_seen_ == cq_entries_) [[unlikely]] {
        cq_head_seen_ = load(cq_word(head));
    }
    if (!overflow_.empty() || cq_tail_ - cq_head_seen_ == cq_entries_) [[unlikely]] {
        overflow_.push_back({user_data, result, cqe_flags});
        store(sq_word(flags), *sq_word(flags) | sq_flag::cq_overflow);
        return;
    }
    cqes_[cq_tail_ & (cq_entries_ - 1)] = {user_data, result, cqe_flags};
    store(cq_word(tail), ++cq_tail_);
}

void emulation::flush_overflow() noexcept {
    cq_head_seen_ = load(cq_word(head));
    while (!overflow_.empty() && cq_tail_ - cq_head_seen_ != cq_entries_) {
        cqes_[cq_tail_ & (cq_entries_ - 1)] = overflow_.front();
        overflow_.pop_front();
        store(cq_word(tail), ++cq_tail_);
    }
    announce_pending();
}

} // namespace coil::uring::detail
