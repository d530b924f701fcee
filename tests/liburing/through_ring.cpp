#include "through_ring.hpp"

#include "rings.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <sys/mman.h>

namespace liburing_shim {
namespace {

std::uint32_t load(const std::uint32_t* word) noexcept {
    return std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(word))
        .load(std::memory_order_acquire);
}
void store(std::uint32_t* word, std::uint32_t value) noexcept {
    std::atomic_ref<std::uint32_t>(*word).store(value, std::memory_order_release);
}

} // namespace

through_ring::~through_ring() {
    ring_.reset();
    if (memory_ != nullptr) {
        raw(SYS_munmap, reinterpret_cast<long>(memory_), static_cast<long>(size_));
    }
}

int through_ring::setup(unsigned wanted, params& p, mapping& m) noexcept {
    if (p.resv[0] != 0 || p.resv[1] != 0 || p.resv[2] != 0) {
        return -EINVAL; // not an argument of uring::ring
    }
    try {
        ring_.emplace(wanted, p);
    } catch (const std::system_error& e) {
        return -e.code().value();
    }
    sq_entries_ = ring_->sq_entries();
    cq_entries_ = ring_->cq_entries();
    cq_begin_ = (words + sq_entries_ + 3) & ~std::uint32_t{3};
    const std::size_t cq_end =
        (cq_begin_ + words) * sizeof(std::uint32_t) + cq_entries_ * sizeof(cqe);
    const std::size_t sqes_at = (cq_end + 4095) & ~std::size_t{4095};
    size_ = sqes_at + sq_entries_ * sizeof(sqe);
    const long memory = raw(SYS_mmap, 0, static_cast<long>(size_), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory < 0 && memory > -4096) {
        return static_cast<int>(memory);
    }
    memory_ = reinterpret_cast<std::uint32_t*>(memory);
    sqes_ = reinterpret_cast<sqe*>(memory + static_cast<long>(sqes_at));
    cqes_ = reinterpret_cast<cqe*>(cq(words));
    *sq(mask) = sq_entries_ - 1;
    *sq(entries) = sq_entries_;
    *cq(mask) = cq_entries_ - 1;
    *cq(entries) = cq_entries_;
    describe(p);
    m = {memory_, memory_, sqes_};
    return 0;
}

void through_ring::describe(params& p) const noexcept {
    const auto in_sq = [](std::uint32_t i) { return i * std::uint32_t{sizeof i}; };
    const auto in_cq = [this](std::uint32_t i) {
        return (cq_begin_ + i) * std::uint32_t{sizeof i};
    };
    p.sq_entries = sq_entries_;
    p.cq_entries = cq_entries_;
    p.features = ring_->features();
    p.sq_off = {in_sq(head),
                in_sq(tail),
                in_sq(mask),
                in_sq(entries),
                in_sq(flags),
                in_sq(dropped),
                in_sq(words),
                0,
                0};
    p.cq_off = {in_cq(head),    in_cq(tail), in_cq(mask),
                in_cq(entries), in_cq(lost), in_cq(words),
                in_cq(flags),   0,           0};
}

std::uint32_t through_ring::unread() const noexcept { return load(cq(tail)) - load(cq(head)); }

int through_ring::enter(unsigned to_submit, unsigned min_complete, unsigned flag_bits,
                        const void* arg, std::size_t arg_size) noexcept {
    ring& r = *ring_;
    const bool has_arg = (flag_bits & enter_flag::ext_arg) != 0;
    const bool waits = (flag_bits & enter_flag::getevents) != 0;
    const bool polls = (r.setup_flags() & setup::sqpoll) != 0;
    const unsigned least = std::min(min_complete, cq_entries_);
    const unsigned missing = least - std::min(least, unread());

    copy_submissions(to_submit);
    int result = 0;
    if ((flag_bits & enter_flag::ext_arg_reg) != 0 ||
        (has_arg && arg_size != sizeof(getevents_arg)) || (!polls && r.sq_ready() > to_submit)) {
        result = enter_directly(to_submit, missing, flag_bits, arg, arg_size);
    } else if (waits) {
        getevents_arg given{};
        if (has_arg && arg != nullptr) {
            given = *static_cast<const getevents_arg*>(arg);
        }
        const std::uint32_t extra = flag_bits & ~(enter_flag::ext_arg | enter_flag::sq_wakeup);
        result = r.enter(
            missing, extra,
            reinterpret_cast<const coil::uring::timespec*>(static_cast<std::uintptr_t>(given.ts)),
            given.min_wait_usec);
    } else {
        result = r.enter(0, flag_bits & ~(enter_flag::ext_arg | enter_flag::sq_wakeup));
    }
    copy_completions(waits);
    return (result == -ETIME || result == -EINTR) && unread() != 0 ? 0 : result;
}

/// Handles what ring::enter() cannot express: registered arguments, arguments of a wrong size, and
/// a submission of fewer entries than are committed.
int through_ring::enter_directly(unsigned to_submit, unsigned missing, unsigned flag_bits,
                                 const void* arg, std::size_t arg_size) noexcept {
    ring& r = *ring_;
    int submitted = 0;
    if (to_submit != 0 && r.sq_ready() <= to_submit) {
        submitted = r.submit();
        if (submitted < 0 || static_cast<unsigned>(submitted) != to_submit) {
            return submitted;
        }
        to_submit = 0;
    }
    const int n = r.get_backend().enter(to_submit, missing, flag_bits, arg, arg_size);
    return submitted != 0 ? submitted : n;
}

/// Copies the first `count` of the program's published entries, except those already committed.
void through_ring::copy_submissions(unsigned count) noexcept {
    ring& r = *ring_;
    const std::uint32_t consumed = copied_ - r.sq_ready();
    const std::uint32_t published = load(sq(tail)) - consumed;
    const std::uint32_t end = consumed + std::min(count, published);
    while (static_cast<std::int32_t>(end - copied_) > 0) {
        const std::uint32_t index = *sq(words + (copied_ & *sq(mask)));
        if (index >= sq_entries_) {
            ++copied_;
            ++*sq(dropped);
            return;
        }
        sqe* const s = r.acquire();
        if (s == nullptr) {
            return;
        }
        *s = sqes_[index];
        r.commit(s);
        ++copied_;
    }
}

void through_ring::post(const cqe& c) noexcept {
    const std::uint32_t at = *cq(tail);
    cqes_[at & *cq(mask)] = c;
    store(cq(tail), at + 1);
}

/// With `flush`, copies even if the queue is flagged as overflowed, like enter() with getevents.
void through_ring::copy_completions(bool flush) noexcept {
    ring& r = *ring_;
    while (flush || (load(sq(flags)) & sq_flag::cq_overflow) == 0) {
        if (unread() == 0) {
            r.for_each_cqe([this](const cqe& c) { post(c); });
        }
        for (const cqe* c = nullptr; unread() < cq_entries_ && (c = r.peek()) != nullptr;) {
            post(*c);
            r.advance();
        }
        if (!flush || !r.overflowed() || unread() == cq_entries_) {
            break;
        }
        r.enter(0, enter_flag::getevents);
    }
    std::uint32_t shown = 0;
    if (r.overflowed() || (r.has_completions() && unread() == cq_entries_)) {
        shown |= sq_flag::cq_overflow;
    } else if (r.needs_enter()) {
        shown |= sq_flag::taskrun;
    }
    store(sq(flags), shown);
    store(sq(head), copied_ - r.sq_ready());
    store(cq(lost), r.cq_overflow());
}

int through_ring::do_register(register_op op, void* arg, unsigned count) noexcept {
    switch (op) {
    case register_op::enable_rings:
        return arg != nullptr || count != 0 ? -EINVAL : ring_->enable();
    case register_op::resize_rings: // would replace the memory that the ring uses
        return -EINVAL;
    default:
        return ring_->get_backend().do_register(op, arg, count);
    }
}

} // namespace liburing_shim
