// Scheduling of contexts, and the passage of time.

#include "world_state.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>

namespace coil::sim::detail {

namespace {

/// Marks the thread as executing on behalf of the world.
class inside_scope {
public:
    explicit inside_scope(coil::detail::sim_driver& world) noexcept
        : outer_(std::exchange(coil::detail::current_sim_driver, &world)) {}
    inside_scope(const inside_scope&) = delete;
    inside_scope& operator=(const inside_scope&) = delete;
    ~inside_scope() { coil::detail::current_sim_driver = outer_; }

private:
    coil::detail::sim_driver* outer_;
};

} // namespace

// ---- a context -------------------------------------------------------------------------------

slot::slot(world_state& w, machine& m, std::uint32_t number, io_context_options options)
    : world_(w) {
    if (m.world.fault(m.world.options.faults.small_queues, "small queues")) {
        options.entries = options.cq_entries = 2;
    }
    options.idle = idle_policy::park();
    options.name = m.name + '.' + std::to_string(number);
    options.make_backend = [this, &m, number] {
        auto made = std::make_unique<front_backend>(m, *this, number);
        backend_ = &made->behind();
        return made;
    };
    context_ = std::make_unique<io_context>(std::move(options));
    loop().begin_turns(world_);
}

slot::~slot() { end(); }

/// Tasks of one context may wait for tasks of others of the host: all contexts end their tasks here
/// before any context is destroyed.
void slot::end() noexcept {
    turn_began = world_.scheduler.now();
    if (!std::exchange(in_turn, true)) {
        loop().end_turns();
    }
}

void slot::report_violation(const std::string& sentence) noexcept { world_.fail(sentence); }
void slot::fatal_error(const char* sentence) noexcept { world_.fatal_error(sentence); }

bool slot::is_runnable(std::int64_t now) noexcept {
    return !in_turn && held_until <= now &&
           (runnable_ || backend_->has_work() || until_ <= now || backend_->next_timer() <= now);
}

std::int64_t slot::next() noexcept {
    if (in_turn) {
        return never;
    }
    if (runnable_ || backend_->has_work()) {
        return held_until;
    }
    const std::int64_t first = std::min(until_, backend_->next_timer());
    return first == never ? never : std::max(held_until, first);
}

void slot::turn() {
    in_turn = true;
    turn_began = world_.scheduler.now();
    runnable_ = false;
    coil::detail::turn_report report;
    try {
        report = loop().turn();
    } catch (...) {
        in_turn = false;
        runnable_ = true;
        throw;
    }
    in_turn = false;
    using enum coil::detail::turn_report::kind;
    runnable_ = runnable_ || report.what == busy;
    until_ = report.what == idle ? report.until_ns : never;
}

host_state::host_state(world_state& w, std::uint32_t number, std::string name)
    : world(w), backend(w.scheduler, w.net, number, std::move(name)), handle(*this) {}

// ---- the world -------------------------------------------------------------------------------

world_state::~world_state() {
    for (const auto& h : hosts_) {
        h->backend.up = false;
    }
    for (const auto& h : hosts_) {
        end_contexts(*h);
    }
    scheduler.forget();
}

sim::host& world_state::host(std::string_view name) {
    for (const auto& h : hosts_) {
        if (h->backend.name == name) {
            return h->handle;
        }
    }
    hosts_.push_back(std::make_unique<host_state>(*this, static_cast<std::uint32_t>(hosts_.size()),
                                                  std::string(name)));
    return hosts_.back()->handle;
}

void world_state::fail(const std::string& sentence) noexcept {
    if (violation_.empty()) {
        violation_ = "sim: " + sentence;
        std::fprintf(stderr, "coil: %s\n", violation_.c_str());
        scheduler.trace.note(violation_);
    }
}

void world_state::fatal_error(const char* sentence) noexcept {
    std::fprintf(stderr, "%scoil: sim: SEED=%llu: %s\n", scheduler.trace.text().c_str(),
                 static_cast<unsigned long long>(seed_), sentence);
    std::abort();
}

void world_state::check() {
    if (!violation_.empty()) {
        throw sim::violation(std::exchange(violation_, {}));
    }
}

bool world_state::run(const std::function<bool()>* reached, std::int64_t limit) {
    for (;;) {
        if (reached != nullptr && (*reached)()) {
            return true;
        }
        if (step(limit) == progress::none) {
            return false;
        }
        check();
    }
}

world_state::progress world_state::step(std::int64_t limit) {
    const progress made = step_once(limit);
    finish_waiting_turns();
    return made;
}

/// Completes the turns that wait, so that a caller never finds a turn half executed.
void world_state::finish_waiting_turns() noexcept {
    threads_.take_over();
    while (threads_.any_waiting()) {
        step_for_waiting();
        threads_.take_over();
    }
}

world_state::progress world_state::step_once(std::int64_t limit) {
    if (threads_.continue_ready()) {
        return progress::some;
    }
    scheduler.run_due();
    if (turns_ == 0) {
        do_postponed();
    }
    const std::int64_t now = scheduler.now();
    std::int64_t next = scheduler.next();
    candidates_.clear();
    for (const auto& h : hosts_) {
        for (const auto& s : h->slots) {
            if (s->is_runnable(now)) {
                candidates_.push_back(s.get());
            } else {
                next = std::min(next, s->next());
            }
        }
    }
    const std::size_t count = candidates_.size() + (work_.empty() ? 0 : 1);
    if (count == 0) {
        if (next == never || next > limit) {
            return threads_.continue_any() ? progress::some : progress::none;
        }
        scheduler.advance_to(next);
        return progress::some;
    }
    threads_.note_progress();
    begin_one(count == 1 ? 0 : scheduler.random.below(count));
    return progress::some;
}

/// Begins a turn of the chosen candidate, or executes work of another thread.
void world_state::begin_one(std::size_t chosen) {
    {
        struct turn_in_progress { // a turn may throw
            unsigned& count;
            explicit turn_in_progress(unsigned& turns) noexcept : count(turns) { ++count; }
            turn_in_progress(const turn_in_progress&) = delete;
            turn_in_progress& operator=(const turn_in_progress&) = delete;
            ~turn_in_progress() { --count; }
        };
        const turn_in_progress counted(turns_);
        execute(chosen);
    }
    scheduler.advance_to(scheduler.now() + scheduler.options.turn.count());
}

void world_state::execute(std::size_t chosen) {
    const inside_scope inside(*this);
    if (chosen == candidates_.size()) {
        do_work_of_others();
        return;
    }
    slot& s = *candidates_[chosen];
    const fault_plan& faults = scheduler.options.faults;
    if (scheduler.fault(faults.delay_turn, "a wake-up is late")) {
        s.held_until = scheduler.now() +
                       scheduler.random.between(1, 1000 * std::int64_t{faults.longest_delay_us});
    } else {
        s.turn();
    }
}

void world_state::do_work_of_others() {
    const std::size_t which = scheduler.random.below(work_.size());
    const foreign_work work = work_[which];
    work_.erase(work_.begin() + static_cast<std::ptrdiff_t>(which));
    scheduler.trace.event("work of another thread");
    coil::detail::event_loop* const loop = std::exchange(coil::detail::current_loop, nullptr);
    coil::detail::event_loop* const asker = std::exchange(coil::detail::asked_by, work.asked_by);
    work.run(*work.node);
    coil::detail::asked_by = asker;
    coil::detail::current_loop = loop;
}

void world_state::do_postponed() {
    while (!postponed_.empty()) {
        const std::function<void()> f = std::move(postponed_.front());
        postponed_.pop_front();
        f();
    }
}

void world_state::between_turns(std::function<void()> f) {
    if (turns_ == 0) {
        f();
    } else {
        postponed_.push_back(std::move(f));
    }
}

struct world_state::postponed final : object {
    postponed(world_state& w, std::function<void()> what) : world(w), f(std::move(what)) {}
    world_state& world;
    std::function<void()> f;
};

void world_state::after(std::int64_t time, std::function<void()> f) {
    const auto p = make<postponed>(*this, std::move(f));
    scheduler.after(time, *p, [](object& about, std::uint64_t, std::uint64_t) {
        auto& due = static_cast<postponed&>(about);
        due.world.postponed_.push_back(std::move(due.f));
    });
}

void world_state::crash(host_state& h) {
    between_turns([this, &h] {
        if (!h.backend.up) {
            return;
        }
        h.backend.crash();
        end_contexts(h);
    });
}

void world_state::end_contexts(host_state& h) {
    between_turns([this, &h] {
        ++turns_; // defers what the destructors of its tasks request, such as a crash
        const inside_scope inside(*this);
        for (const auto& s : h.slots) {
            s->end();
            finish_waiting_turns();
        }
        for (foreign_work& left : work_) { // no context waits for its result
            for (const auto& s : h.slots) {
                left.asked_by = left.asked_by == &s->loop() ? nullptr : left.asked_by;
            }
        }
        h.slots.clear();
        --turns_;
    });
}

void world_state::restart(host_state& h) {
    between_turns([&h] {
        if (!h.backend.up) {
            h.backend.start();
            if (h.boot) {
                h.boot(h.handle);
            }
        }
    });
}

// ---- the work of other threads ---------------------------------------------------------------

void world_state::run_later(coil::detail::queue_node& node,
                            void (*run)(coil::detail::queue_node&)) {
    work_.push_back({&node, run, coil::detail::current_loop});
}

bool world_state::take_back(coil::detail::queue_node& node) noexcept {
    const auto found = std::find_if(work_.begin(), work_.end(),
                                    [&](const foreign_work& w) { return w.node == &node; });
    if (found == work_.end()) {
        return false;
    }
    work_.erase(found);
    return true;
}

/// Sometimes executes other threads' work just before a loop goes to sleep, where a wake-up could
/// be lost.
void world_state::let_others_act() noexcept {
    constexpr unsigned one_in = 4;
    if (!work_.empty() && scheduler.random.below(one_in) == 0) {
        do_work_of_others();
    }
}

void world_state::wake(coil::detail::event_loop& loop) noexcept {
    for (const auto& h : hosts_) {
        for (const auto& s : h->slots) {
            if (&s->loop() == &loop) {
                s->make_runnable(0);
                return;
            }
        }
    }
}

void world_state::run_others_until_message(coil::detail::event_loop& loop) noexcept {
    if (!loop.has_messages()) {
        threads_.wait(loop);
    }
}

void world_state::step_for_waiting() noexcept {
    if (step_once(never - 1) == progress::none) {
        fatal_error("a context waits for a message of another context that never arrives");
    }
}

/// In the order of precedence of RFC 6724: ::1, IPv4, unique local addresses (fc00::/7).
std::vector<std::string> world_state::addresses_of(const std::string& name) {
    if (name == "localhost") {
        return {"::1", "127.0.0.1"};
    }
    for (const auto& h : hosts_) {
        if (h->backend.name == name) {
            return {h->handle.address(0).ip(), h->handle.address(0, AF_INET6).ip()};
        }
    }
    return {};
}

} // namespace coil::sim::detail
