#include "sim_backend.hpp"

#include "../uring/opcode_kinds.hpp"

#include <algorithm>
#include <cerrno>

namespace coil::sim::detail {

namespace {

using uring::opcode;

constexpr std::int64_t longest_turn_ns = 60'000'000'000;

using uring::detail::has_message_flags;
using uring::detail::sends;

bool waits(opcode op) noexcept {
    return receives(op) || sends(op) || op == opcode::accept || op == opcode::connect ||
           op == opcode::splice;
}

/// The number of bytes transferred so far, as io_uring reports it for sends and receives, or
/// -ECANCELED.
int result_when_cancelled(const uring::emulated_request& r) noexcept {
    return r.done > 0 && has_message_flags(r.op()) ? static_cast<int>(r.done) : -ECANCELED;
}

} // namespace

sim_backend::sim_backend(machine& m, driver& d, std::uint32_t context)
    : machine_(m), driver_(d), context_(context), anchor_(make<anchor>()) {
    anchor_->backend = this;
}

sim_backend::~sim_backend() {
    anchor_->backend = nullptr;
    close_world();
}

std::unique_ptr<sim_backend::request> sim_backend::make_request() {
    return std::make_unique<sim_request>(*this);
}

std::int64_t sim_backend::realtime_ns() noexcept { return epoch_ns + now_ns(); }

int sim_backend::install_file(int file, bool) noexcept {
    class file* const f = machine_.get(file);
    return f == nullptr ? -EBADF : machine_.open(ref<class file>(f));
}

bool sim_backend::is_open(int descriptor) noexcept { return machine_.get(descriptor) != nullptr; }

bool sim_backend::has_opcode(opcode op) const noexcept {
    switch (op) {
    case opcode::recv_zc:
    case opcode::readv_fixed:
    case opcode::writev_fixed:
        return false;
    default:
        return true;
    }
}

// ---- starting a call -------------------------------------------------------------------------

int sim_backend::begin(request& base) noexcept {
    auto& r = static_cast<sim_request&>(base);
    event_scheduler& world = machine_.world;
    ++world.operations;
    ++r.turn_;
    if (uring::detail::has_file(r.op())) {
        machine::report_if_real(r.file);
    }
    r.file_ = ref<file>(machine_.get(r.file));
    r.file_in_ = r.file_in >= 0 ? ref<file>(machine_.get(r.file_in)) : ref<file>();
    r.stopping_ = r.begun_ = false;
    trace(tracer::kind::begin, r, 0);
    if (r.follows() && world.fault(world.options.faults.delay_link, "a linked call starts late")) {
        r.stage_ = sim_request::stage::late;
        at_moment(r, some_delay());
        return pending;
    }
    return start(r);
}

/// Returns a result, or `pending`.
int sim_backend::start(sim_request& r) {
    int result = inject(r);
    if (result == 0) {
        if (r.multishot()) {
            enqueue(r);
            return pending;
        }
        watch(r);
        if (machine::asks_disk(r.op(), r.file_.get())) {
            at_moment(r, disk_time(r));
            return pending;
        }
        result = try_now(r);
        if (result == would_wait) {
            return pending;
        }
    }
    if (is_delayed(r, result)) {
        return pending;
    }
    unwatch(r);
    trace(tracer::kind::end, r, result);
    r.file_ = r.file_in_ = {};
    return result;
}

/// Injects errors that occur before the call has any effect.
int sim_backend::inject(sim_request& r) {
    event_scheduler& world = machine_.world;
    const fault_plan& faults = world.options.faults;
    if (!waits(r.op())) {
        return 0;
    }
    if (world.fault(faults.interrupt, "EINTR")) {
        return -EINTR;
    }
    return world.fault(faults.cancel, "ECANCELED") ? -ECANCELED : 0;
}

std::int64_t sim_backend::disk_time(const sim_request& r) const {
    event_scheduler& world = machine_.world;
    const std::int64_t most = r.op() == opcode::fsync ? world.options.disk.sync.count()
                                                      : world.options.disk.latency.count();
    return world.random.between(most / 4, most);
}

/// Attempts a call and returns its result, or queues it and returns would_wait.
int sim_backend::try_now(sim_request& r) {
    unwatch(r);
    int result = attempt(r);
    if (result != would_wait) {
        return result;
    }
    if (r.op() == opcode::futex_wait || r.op() == opcode::futex_waitv) {
        r.stage_ = sim_request::stage::waiting;
        return would_wait;
    }
    // A ring waits even if O_NONBLOCK is set.
    if (has_message_flags(r.op()) && (r.entry.msg_flags & MSG_DONTWAIT) != 0) {
        return r.done > 0 ? static_cast<int>(r.done) : -EAGAIN;
    }
    watch(r);
    put_to_wait(r);
    return would_wait;
}

void sim_backend::put_to_wait(sim_request& r) {
    r.stage_ = sim_request::stage::waiting;
    // splice may wait for either file but is queued on one: on the source if that is not readable,
    // otherwise on the destination.
    file& f = r.file_in_ && (r.file_in_->events() & POLLIN) == 0 ? *r.file_in_ : *r.file_;
    f.waiting.push(r);
}

void sim_backend::at_moment(sim_request& r, std::int64_t delay) {
    if (!r.is_out_of_reach()) {
        r.stage_ = sim_request::stage::timed;
    }
    ++r.turn_;
    machine_.world.after(
        delay, *anchor_,
        [](object& about, std::uint64_t address, std::uint64_t turn) {
            sim_backend* const backend = static_cast<anchor&>(about).backend;
            if (backend == nullptr) {
                return;
            }
            auto& waited = *reinterpret_cast<sim_request*>(static_cast<std::uintptr_t>(address));
            if (waited.turn_ == turn && !waited.is_linked()) {
                backend->enqueue(waited);
            }
        },
        reinterpret_cast<std::uintptr_t>(&r), r.turn_);
}

std::int64_t sim_backend::some_delay() const {
    event_scheduler& world = machine_.world;
    return world.random.between(0, 1000 * std::int64_t{world.options.faults.longest_delay_us});
}

void sim_backend::end_later(sim_request& r, int result) {
    r.result_ = result;
    r.stage_ = sim_request::stage::done;
    at_moment(r, some_delay());
}

bool sim_backend::is_delayed(sim_request& r, int result) {
    event_scheduler& world = machine_.world;
    const bool delayed =
        world.fault(world.options.faults.delay_completion, "a completion is delayed");
    if (delayed) {
        end_later(r, result);
    }
    return delayed;
}

void sim_backend::enqueue(sim_request& r) noexcept {
    if (!r.is_out_of_reach()) {
        r.stage_ = sim_request::stage::ready;
    }
    queue_.push(r);
    driver_.make_runnable(context_);
}

void sim_request::try_again() noexcept { backend_.enqueue(*this); }

// ---- continuing a call -----------------------------------------------------------------------

int sim_backend::wait(std::int64_t deadline_ns) noexcept {
    event_scheduler& world = machine_.world;
    world.run_due();
    if (work()) {
        return 0;
    }
    // Called inside a turn: time advances and events occur, but no coroutine runs.
    while (world.now() < deadline_ns) {
        const std::int64_t next = std::min(world.next(), deadline_ns);
        if (next == never || world.now() - driver_.turn_began > longest_turn_ns) {
            driver_.fatal_error(
                "a turn does not end: a destroyed frame waits for a call that does not "
                "complete");
        }
        world.advance_to(next);
        world.run_due();
        if (work()) {
            return 0;
        }
    }
    return 0;
}

/// Returns true if a call has ended.
bool sim_backend::work() {
    bool ended = false;
    waiter* const last = queue_.last();
    for (bool more = last != nullptr; more;) {
        auto& r = static_cast<sim_request&>(*queue_.first());
        more = &r != last; // calls queued again meanwhile are left for the next round
        r.unlink();
        ended = go_on(r) || ended;
    }
    return ended;
}

bool sim_backend::go_on(sim_request& r) {
    if (r.stage_ == sim_request::stage::done) {
        return end(r, r.result_);
    }
    if (r.stage_ == sim_request::stage::late) {
        r.stage_ = sim_request::stage::ready;
        const int result = start(r);
        if (result == pending) {
            return false;
        }
        r.stage_ = sim_request::stage::over;
        complete(r, result);
        return true;
    }
    if (r.multishot()) {
        return stream(r);
    }
    int result = 0;
    if (r.op() == opcode::futex_wait) {
        result = 0; // woken
    } else {
        result = try_now(r);
    }
    if (result == would_wait) {
        return r.stopping_ && end_stopped(r);
    }
    return !is_delayed(r, result) && end(r, result);
}

bool sim_backend::end(sim_request& r, int result) {
    r.stage_ = sim_request::stage::over;
    r.words_.clear();
    ++r.turn_;
    unwatch(r);
    trace(tracer::kind::end, r, result);
    const ref<file> keep = std::exchange(r.file_, {});
    const ref<file> keep_in = std::exchange(r.file_in_, {});
    complete(r, result);
    return true;
}

/// Ends a call that was cancelled while it was ready, and whose last attempt would have to wait.
/// Always returns true.
bool sim_backend::end_stopped(sim_request& r) {
    r.unlink();
    return end(r, result_when_cancelled(r));
}

/// Posts results of a multishot request as long as there are any.
bool sim_backend::stream(sim_request& r) {
    event_scheduler& world = machine_.world;
    bool any = false;
    for (;;) {
        const int result = attempt(r);
        if (result == would_wait) {
            put_to_wait(r);
            return (r.stopping_ && end_stopped(r)) || any;
        }
        const bool continues =
            (result > 0 && !r.at_end_) || (result == 0 && r.op() == opcode::accept);
        if (!continues ||
            world.fault(world.options.faults.end_multishot, "a multishot request ends early")) {
            return end(r, result);
        }
        if (!part(r, result)) {
            return end(r, result);
        }
        trace(tracer::kind::part, r, result);
        any = true;
        if (r.op() == opcode::poll_add) {
            // Edge-triggered: reports changes only.
            put_to_wait(r);
            return !r.stopping_ || end_stopped(r);
        }
    }
}

sim_backend::outcome sim_backend::cancel(request& base) noexcept {
    auto& r = static_cast<sim_request&>(base);
    event_scheduler& world = machine_.world;
    trace(tracer::kind::cancel, r, 0);
    if (r.is_out_of_reach()) {
        return outcome::busy;
    }
    if (world.fault(world.options.faults.late_after_cancel, "a cancellation is late")) {
        if (r.stage_ == sim_request::stage::timed || r.is_linked()) {
            if (r.stage_ == sim_request::stage::waiting) {
                // The call ends, but not immediately.
                r.unlink();
                end_later(r, result_when_cancelled(r));
                return outcome::later;
            }
            if (r.stage_ == sim_request::stage::ready) {
                r.stopping_ = true; // its next attempt is the last
                return outcome::later;
            }
            return outcome::busy;
        }
    }
    r.unlink();
    ++r.turn_;
    if (const int result = result_when_cancelled(r); result > 0) {
        r.result_ = result;
        r.stage_ = sim_request::stage::done;
        enqueue(r);
        return outcome::later;
    }
    r.stage_ = sim_request::stage::over;
    r.words_.clear();
    unwatch(r);
    const ref<file> keep = std::exchange(r.file_, {});
    const ref<file> keep_in = std::exchange(r.file_in_, {});
    return outcome::ended;
}

void sim_backend::released(request& base) noexcept {
    auto& r = static_cast<sim_request&>(base);
    r.file_ = r.file_in_ = {};
    r.words_.clear();
}

} // namespace coil::sim::detail
