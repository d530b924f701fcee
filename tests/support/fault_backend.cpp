#include "support/fault_backend.hpp"

#include <coil/context/detail/sqe_slot.hpp>
#include <coil/uring/abi.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <initializer_list>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>

namespace coil_test {

using coil::uring::cqe;
using coil::uring::opcode;
using coil::uring::sqe;
namespace cqe_flag = coil::uring::cqe_flag;
namespace enter_flag = coil::uring::enter_flag;
namespace setup_flag = coil::uring::setup;
namespace sq_flag = coil::uring::sq_flag;
namespace sqe_flag = coil::uring::sqe_flag;

namespace {

// The completion queue that the ring sees: these words, then the entries.
constexpr std::uint32_t head_at = 0;
constexpr std::uint32_t tail_at = 4;
constexpr std::uint32_t mask_at = 8;
constexpr std::uint32_t entries_at = 12;
constexpr std::uint32_t lost_at = 16;
constexpr std::uint32_t flags_at = 20;
constexpr std::uint32_t header_size = 64;

std::uint32_t* word(void* base, std::uint32_t offset) noexcept {
    return reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(base) + offset);
}
std::uint32_t load(std::uint32_t* w) noexcept {
    return std::atomic_ref<std::uint32_t>(*w).load(std::memory_order_acquire);
}
void store(std::uint32_t* w, std::uint32_t value) noexcept {
    std::atomic_ref<std::uint32_t>(*w).store(value, std::memory_order_release);
}

opcode opcode_of(const sqe& entry) noexcept { return static_cast<opcode>(entry.opcode); }

bool links(const sqe& entry) noexcept {
    return (entry.flags & (sqe_flag::io_link | sqe_flag::io_hardlink)) != 0;
}

bool is_multishot_poll(const sqe& entry) noexcept {
    return opcode_of(entry) == opcode::poll_add &&
           (entry.len & coil::uring::poll_flag::add_multi) != 0;
}
bool is_multishot_timeout(const sqe& entry) noexcept {
    return opcode_of(entry) == opcode::timeout &&
           (entry.timeout_flags & coil::uring::timeout_flag::multishot) != 0;
}

/// The loop's own read of its wake-up descriptor, which no program could retry.
bool is_wake_up(const sqe& entry) noexcept {
    return (entry.user_data & 7) == static_cast<std::uint64_t>(coil::detail::completion_kind::wake);
}

/// Errors that the call may return on any machine, whatever its arguments. None if the caller could
/// not recover: a close that failed would leak the descriptor.
std::initializer_list<int> errors_of(opcode op) noexcept {
    static constexpr auto transfers = {EINTR, EAGAIN, ENOMEM, EIO, ECANCELED};
    static constexpr auto messages = {EINTR, EAGAIN, ENOMEM, ENOBUFS, ECANCELED};
    static constexpr auto descriptors = {EMFILE, ENFILE, ENOMEM, EINTR, ECANCELED};
    static constexpr auto names = {EIO, ENOMEM, EINTR, ECANCELED};
    static constexpr auto waits = {ENOMEM, ECANCELED};
    static constexpr auto cancels = {EALREADY, ENOENT};
    static constexpr std::initializer_list<int> none = {};
    switch (op) {
    case opcode::read:
    case opcode::write:
    case opcode::readv:
    case opcode::writev:
    case opcode::read_fixed:
    case opcode::write_fixed:
    case opcode::splice:
    case opcode::tee:
    case opcode::fsync:
        return transfers;
    case opcode::send:
    case opcode::recv:
    case opcode::sendmsg:
    case opcode::recvmsg:
    case opcode::send_zc:
    case opcode::sendmsg_zc:
    case opcode::connect:
        return messages;
    case opcode::openat:
    case opcode::openat2:
    case opcode::accept:
    case opcode::socket:
    case opcode::pipe:
        return descriptors;
    case opcode::statx:
    case opcode::fallocate:
    case opcode::ftruncate:
    case opcode::renameat:
    case opcode::unlinkat:
    case opcode::mkdirat:
    case opcode::symlinkat:
    case opcode::linkat:
        return names;
    case opcode::nop:
    case opcode::poll_add:
        return waits;
    case opcode::async_cancel:
        return cancels;
    default:
        return none;
    }
}

bool is_stream_socket(int fd) noexcept {
    int type = 0;
    ::socklen_t length = sizeof type;
    return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

bool is_direct(int fd) noexcept { return (::fcntl(fd, F_GETFL) & O_DIRECT) != 0; }

} // namespace

fault_plan fault_plan::timing() noexcept {
    fault_plan plan;
    plan.delay = 150;
    plan.delay_notification = 500;
    plan.reorder = 200;
    plan.overflow = 50;
    plan.end_multishot = 300;
    plan.partial_submission = 100;
    plan.interrupt_enter = 50;
    plan.busy_enter = 30;
    plan.starve_enter = 5;
    return plan;
}

fault_plan fault_plan::everything() noexcept {
    fault_plan plan = timing();
    plan.shorten = 200;
    plan.fail = 50;
    plan.duplicate = 100;
    return plan;
}

std::uint64_t fault_log::total() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& each : counts_) {
        sum += each.load(std::memory_order_relaxed);
    }
    return sum;
}

fault_backend::fault_backend(std::uint64_t seed, const fault_plan& plan,
                             std::shared_ptr<fault_log> log)
    : random_(seed), plan_(plan), log_(std::move(log)) {}

coil::detail::backend_factory fault_backend::factory(std::uint64_t seed, const fault_plan& plan,
                                                     const std::shared_ptr<fault_log>& log) {
    auto made = std::make_shared<std::atomic<std::uint64_t>>(0);
    return [=] { return std::make_unique<fault_backend>(mixed(seed, (*made)++), plan, log); };
}

int fault_backend::setup(unsigned entries, coil::uring::params& p, mapping& m) noexcept {
    if (const int error = behind_->setup(entries, p, m); error != 0) {
        return error;
    }
    transparent_ = (p.flags & (setup_flag::sqpoll | setup_flag::iopoll)) != 0 ||
                   (p.flags & setup_flag::taskrun_flag) == 0;
    if (transparent_) {
        return 0;
    }
    real_ = p;
    mapping_ = m;
    examined_ = load(sq_word(real_.sq_off.head));
    memory_.assign(header_size / sizeof(cqe) + p.cq_entries, cqe{});
    *word(memory_.data(), mask_at) = p.cq_entries - 1;
    *word(memory_.data(), entries_at) = p.cq_entries;
    p.cq_off = {head_at, tail_at, mask_at, entries_at, lost_at, header_size, flags_at, 0, 0};
    m.cq = memory_.data();
    return 0;
}

int fault_backend::do_register(coil::uring::register_op op, void* arg, unsigned count) noexcept {
    if (op == coil::uring::register_op::resize_rings && !transparent_) {
        return -EINVAL; // like kernels before 6.13; the queues must stay where setup() has mapped
                        // them
    }
    return behind_->do_register(op, arg, count);
}

int fault_backend::enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
                         std::size_t size) noexcept {
    if (transparent_) {
        return behind_->enter(to_submit, min_complete, flags, arg, size);
    }
    if (const int error = refuse(); error != 0) {
        return error;
    }
    examine(to_submit);
    const unsigned taken = take(to_submit);

    // Either this object or the kernel has set the flag. The kernel moves overflowed completions to
    // its queue only in a call with getevents.
    std::atomic_ref<std::uint32_t> shown(*sq_word(real_.sq_off.flags));
    const bool overflown = (shown.fetch_and(~sq_flag::cq_overflow) & sq_flag::cq_overflow) != 0;
    const unsigned fetch =
        (flags & enter_flag::getevents) | (overflown ? enter_flag::getevents : 0);
    int submitted = 0;
    if (taken > 0 || fetch != 0) {
        submitted = behind_->enter(taken, 0, fetch | (flags & enter_flag::no_iowait), nullptr, 0);
    }
    collect();
    deliver();
    int waited = 0;
    if (submitted == static_cast<int>(to_submit) && (flags & enter_flag::getevents) != 0 &&
        min_complete > 0 && available() == 0) {
        waited = wait(min_complete, flags, arg, size);
    }
    show_held();
    if (submitted != 0) {
        return submitted;
    }
    return available() > 0 ? 0 : waited;
}

/// At most three times in a row: a program may give up on a kernel that never accepts entries.
int fault_backend::refuse() noexcept {
    if (refusals_ == 3) {
        refusals_ = 0;
        return 0;
    }
    ++refusals_;
    if (happens(plan_.interrupt_enter, fault::interrupt_enter)) {
        return -EINTR;
    }
    if (happens(plan_.busy_enter, fault::busy_enter)) {
        return -EBUSY;
    }
    if (happens(plan_.starve_enter, fault::starve_enter)) {
        return -EAGAIN;
    }
    refusals_ = 0;
    return 0;
}

// ---- submission

void fault_backend::examine(unsigned to_submit) noexcept {
    const std::uint32_t end = load(sq_word(real_.sq_off.head)) + to_submit;
    bool linked = false; // to the previous entry
    for (; examined_ != end; ++examined_) {
        sqe& entry = entry_at(examined_);
        const bool in_chain = linked || links(entry);
        if (in_chain) {
            last_chain_ += linked ? 0 : 1;
            traits_[entry.user_data] = {last_chain_, false};
        } else if (is_multishot_poll(entry) || is_multishot_timeout(entry)) {
            traits_[entry.user_data] = {0, true};
        } else if (!traits_.empty()) {
            traits_.erase(entry.user_data); // of an earlier entry with the same address
        }
        linked = links(entry);
        examine(entry, in_chain);
    }
}

void fault_backend::examine(sqe& entry, bool in_chain) noexcept {
    if (is_wake_up(entry)) {
        return;
    }
    end_early(entry);
    if (!in_chain) {
        shorten(entry);
    }
    fail(entry);
}

/// Makes a multishot request end early, as it may after any completion: submitted without the
/// multishot flag, it ends after the first. (Not recvmsg, whose buffer layout depends on the flag.)
void fault_backend::end_early(sqe& entry) noexcept {
    switch (opcode_of(entry)) {
    case opcode::poll_add:
        if (is_multishot_poll(entry) && happens(plan_.end_multishot, fault::end_multishot)) {
            entry.len &= ~coil::uring::poll_flag::add_multi;
        }
        break;
    case opcode::timeout:
        if (is_multishot_timeout(entry) && happens(plan_.end_multishot, fault::end_multishot)) {
            entry.timeout_flags &= ~coil::uring::timeout_flag::multishot;
            entry.off = 0; // the count has another meaning without multishot
        }
        break;
    case opcode::accept:
        if ((entry.ioprio & coil::uring::accept_flag::multishot) != 0 &&
            happens(plan_.end_multishot, fault::end_multishot)) {
            entry.ioprio &= static_cast<std::uint16_t>(~coil::uring::accept_flag::multishot);
        }
        break;
    case opcode::recv:
        if ((entry.ioprio & coil::uring::recvsend_flag::recv_multishot) != 0 &&
            happens(plan_.end_multishot, fault::end_multishot)) {
            entry.ioprio &= static_cast<std::uint16_t>(~coil::uring::recvsend_flag::recv_multishot);
        }
        break;
    case opcode::read_multishot:
        if (happens(plan_.end_multishot, fault::end_multishot)) {
            entry.opcode = static_cast<std::uint8_t>(opcode::read);
        }
        break;
    default:
        break;
    }
}

void fault_backend::shorten(sqe& entry) noexcept {
    constexpr std::uint32_t atom = 8; // an eventfd or timerfd transfers all 8 bytes or none
    const bool on_table = (entry.flags & sqe_flag::fixed_file) != 0;
    const bool from_pool = (entry.flags & sqe_flag::buffer_select) != 0;
    switch (opcode_of(entry)) {
    case opcode::read:
    case opcode::write:
    case opcode::read_fixed:
    case opcode::write_fixed:
        if (from_pool || entry.len <= atom || on_table || is_direct(entry.fd)) {
            return;
        }
        break;
    case opcode::readv:
    case opcode::writev: // here `len` is the number of buffers
        if (entry.len <= 1 || on_table || is_direct(entry.fd)) {
            return;
        }
        break;
    case opcode::send:
    case opcode::recv:
    case opcode::send_zc:
        if (from_pool || entry.len <= 1 || on_table || (entry.msg_flags & MSG_WAITALL) != 0 ||
            (entry.ioprio & coil::uring::recvsend_flag::bundle) != 0 ||
            (entry.ioprio & coil::uring::recvsend_flag::send_vectorized) != 0 ||
            !is_stream_socket(entry.fd)) { // the rest of a datagram would be lost
            return;
        }
        break;
    default:
        return;
    }
    if (happens(plan_.shorten, fault::shorten)) {
        entry.len = random_.between(1, entry.len - 1);
    }
}

/// Replaces the request by one that fails without an effect, so that a chain breaks.
void fault_backend::fail(sqe& entry) noexcept {
    const auto errors = errors_of(opcode_of(entry));
    if (errors.size() == 0 || !happens(plan_.fail, fault::fail)) {
        return;
    }
    const int error = errors.begin()[random_.below(static_cast<unsigned>(errors.size()))];
    sqe failure{};
    failure.opcode = static_cast<std::uint8_t>(opcode::nop);
    failure.flags =
        entry.flags & static_cast<std::uint8_t>(~(sqe_flag::fixed_file | sqe_flag::buffer_select));
    failure.nop_flags = coil::uring::nop_flag::inject_result;
    failure.len = static_cast<std::uint32_t>(-error);
    failure.user_data = entry.user_data;
    entry = failure;
}

/// The number of entries to submit. Never a part of a chain, because the kernel ends a chain at the
/// end of a submission.
unsigned fault_backend::take(unsigned to_submit) noexcept {
    if (to_submit < 2 || !random_.chance(plan_.partial_submission)) {
        return to_submit;
    }
    const std::uint32_t head = load(sq_word(real_.sq_off.head));
    unsigned taken = random_.between(1, to_submit - 1);
    while (taken < to_submit && links(entry_at(head + taken - 1))) {
        ++taken;
    }
    if (taken < to_submit && log_) {
        log_->count(fault::partial_submission);
    }
    return taken;
}

// ---- completion

/// Waits until at least one completion is delivered, perhaps fewer than `min_complete`, because any
/// wait may end early. Delayed completions are delivered gradually; completions that arrive
/// meanwhile may overtake them.
int fault_backend::wait(unsigned min_complete, unsigned flags, const void* arg,
                        std::size_t size) noexcept {
    coil::uring::getevents_arg given{};
    if ((flags & enter_flag::ext_arg) != 0) {
        given = *static_cast<const coil::uring::getevents_arg*>(arg);
    } else {
        given.sigmask = reinterpret_cast<std::uintptr_t>(arg);
        given.sigmask_sz = arg != nullptr ? static_cast<std::uint32_t>(size) : 0;
    }
    using std::chrono::nanoseconds;
    const bool limited = given.ts != 0;
    auto deadline = nanoseconds::max();
    if (limited) {
        const auto* t = reinterpret_cast<const coil::uring::timespec*>(given.ts);
        const auto span = std::chrono::seconds{t->tv_sec} + nanoseconds{t->tv_nsec};
        deadline = (flags & enter_flag::abs_timer) != 0 ? span : now().time_since_epoch() + span;
    }
    for (;;) {
        const bool holding = !held_.empty();
        auto rest = limited ? std::max(deadline - now().time_since_epoch(), nanoseconds::zero())
                            : nanoseconds::max();
        bool last = limited;
        if (holding) {
            const nanoseconds moment{random_.below(100'000)};
            last = rest <= moment;
            rest = std::min(rest, moment);
        }
        coil::uring::timespec t{};
        coil::uring::getevents_arg a = given;
        a.ts = 0;
        if (rest != nanoseconds::max()) {
            t.tv_sec = rest.count() / 1'000'000'000;
            t.tv_nsec = rest.count() % 1'000'000'000;
            a.ts = reinterpret_cast<std::uintptr_t>(&t);
        }
        if (holding) {
            a.min_wait_usec = 0;
        }
        const int r = behind_->enter(0, holding ? 1 : min_complete,
                                     enter_flag::getevents | enter_flag::ext_arg |
                                         (flags & enter_flag::no_iowait),
                                     &a, sizeof a);
        collect();
        deliver();
        if (available() > 0) {
            return 0;
        }
        if (r < 0 && (r != -ETIME || last)) {
            return r;
        }
    }
}

/// Takes all completions that the kernel has posted, so that its own queue does not stay full.
void fault_backend::collect() noexcept {
    std::uint32_t* const head = real_cq_word(real_.cq_off.head);
    std::uint32_t* const tail = real_cq_word(real_.cq_off.tail);
    const std::uint32_t mask = *real_cq_word(real_.cq_off.ring_mask);
    const auto* const entries = reinterpret_cast<const cqe*>(real_cq_word(real_.cq_off.cqes));
    for (;;) {
        std::uint32_t next = load(head);
        for (const std::uint32_t end = load(tail); next != end; ++next) {
            hold(entries[next & mask]);
        }
        store(head, next);
        if ((load(sq_word(real_.sq_off.flags)) & sq_flag::cq_overflow) == 0) {
            break;
        }
        behind_->enter(0, 0, enter_flag::getevents, nullptr, 0);
        if (load(tail) == load(head)) {
            break;
        }
    }
    store(word(memory_.data(), lost_at), load(real_cq_word(real_.cq_off.overflow)));
}

void fault_backend::hold(const cqe& c) noexcept {
    completion item{c, 0, 0};
    bool twice = false;
    if (const auto found = traits_.find(c.user_data); found != traits_.end()) {
        item.chain = found->second.chain;
        const bool more = (c.flags & cqe_flag::more) != 0;
        twice = more && found->second.may_repeat && happens(plan_.duplicate, fault::duplicate);
        if (!more) {
            traits_.erase(found);
        }
    }
    if ((c.flags & cqe_flag::notif) != 0) {
        if (happens(plan_.delay_notification, fault::delay_notification)) {
            item.delay = random_.between(1, 4 * plan_.longest_delay);
        }
    } else if (happens(plan_.delay, fault::delay)) {
        item.delay = random_.between(1, plan_.longest_delay);
    }
    held_.push_back(item);
    if (twice) {
        held_.push_back(item);
    }
}

/// Advances the delays by one step, and moves due completions to the ring's queue if it has space.
void fault_backend::deliver() noexcept {
    for (completion& item : held_) {
        item.delay -= item.delay > 0 ? 1 : 0;
    }
    std::uint32_t* const tail = word(memory_.data(), tail_at);
    const auto size = static_cast<std::uint32_t>(memory_.size() - header_size / sizeof(cqe));
    unsigned most = size - available();
    if (held_.size() > 2 && happens(plan_.overflow, fault::overflow)) {
        most = std::min(most, random_.between(1, 2));
    }
    std::uint32_t next = *tail;
    for (; most > 0; --most) {
        const std::size_t chosen = choose();
        if (chosen == held_.size()) {
            break;
        }
        memory_[header_size / sizeof(cqe) + (next++ & (size - 1))] = held_[chosen].what;
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    store(tail, next);
}

/// Selects the completion to deliver: the oldest that is due or, to reorder, one of those close
/// behind.
std::size_t fault_backend::choose() noexcept {
    constexpr std::size_t window = 32;
    const std::size_t end = std::min(held_.size(), window);
    const auto may_go = [this](std::size_t at) {
        return held_[at].delay == 0 && !overtakes_its_own(at);
    };
    std::size_t first = 0;
    while (first < end && !may_go(first)) {
        ++first;
    }
    if (first == end) {
        return held_.size();
    }
    if (end - first > 1 && random_.chance(plan_.reorder)) {
        const std::size_t other =
            first + random_.between(1, static_cast<unsigned>(end - first - 1));
        if (may_go(other)) {
            if (log_) {
                log_->count(fault::reorder);
            }
            return other;
        }
    }
    return first;
}

bool fault_backend::overtakes_its_own(std::size_t at) const noexcept {
    const completion& item = held_[at];
    return std::any_of(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at),
                       [&](const completion& earlier) {
                           return earlier.what.user_data == item.what.user_data ||
                                  (item.chain != 0 && earlier.chain == item.chain) ||
                                  (earlier.what.flags & item.what.flags & cqe_flag::buffer) != 0;
                       });
}

unsigned fault_backend::available() const noexcept {
    void* const base = const_cast<cqe*>(memory_.data());
    return *word(base, tail_at) - load(word(base, head_at));
}

/// A program that does not wait would not look for delayed completions unless a flag announced
/// them.
void fault_backend::show_held() noexcept {
    if (!held_.empty()) {
        std::atomic_ref<std::uint32_t>(*sq_word(real_.sq_off.flags)).fetch_or(sq_flag::cq_overflow);
    }
}

sqe& fault_backend::entry_at(std::uint32_t position) const noexcept {
    const std::uint32_t mask = *sq_word(real_.sq_off.ring_mask);
    return mapping_.sqes[sq_word(real_.sq_off.array)[position & mask]];
}

std::uint32_t* fault_backend::sq_word(std::uint32_t offset) const noexcept {
    return word(mapping_.sq, offset);
}

std::uint32_t* fault_backend::real_cq_word(std::uint32_t offset) const noexcept {
    return word(mapping_.cq, offset);
}

bool fault_backend::happens(unsigned rate, fault f) noexcept {
    if (!random_.chance(rate)) {
        return false;
    }
    if (log_) {
        log_->count(f);
    }
    return true;
}

} // namespace coil_test
