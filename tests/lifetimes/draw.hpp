#pragma once

#include "lifetimes/plan.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace lifetime_test {

/// Draws random programs. Filtered steps are drawn and then left out, so that the rest of the
/// program does not change.
class drawer {
public:
    drawer(std::uint64_t seed, std::span<const kind> kinds, const filter& f, bool simulated)
        : random_(seed), kinds_(kinds), filter_(f), simulated_(simulated) {
        result_.seed = seed;
    }

    program draw() {
        program& p = result_;
        p.how = draw_mode();
        p.contexts = random_.between(1, 4);
        if (p.how == mode::coil_run) {
            p.contexts = 1;
        }
        p.entries = std::array{4U, 16U, 64U}.at(random_.below(3));
        p.most_in_flight = random_.one_in(5) ? random_.between(1, 5) : UINT32_MAX;
        p.throws = random_.one_in(3);
        p.waits = random_.one_in(2);
        p.forwards = random_.one_in(2);
        for (unsigned n = random_.between(1, random_.one_in(2) ? 2 : 5); n > 0; --n) {
            root r;
            r.context = random_.below(p.contexts);
            r.detached = random_.one_in(2);
            r.work = draw_body(0);
            p.roots.push_back(std::move(r));
        }
        for (unsigned n = random_.between(1, 3); n > 0; --n) {
            p.attacks.push_back(draw_attack());
        }
        reduce();
        return std::move(result_);
    }

private:
    mode draw_mode() {
        constexpr std::array usual{mode::started, mode::started,  mode::run,      mode::runtime,
                                   mode::runtime, mode::block_on, mode::coil_run, mode::never};
        return usual.at(random_.below(usual.size()));
    }

    /// At the leaves of the tree only kinds without bodies; above them, half of the time, kinds
    /// with bodies.
    const kind& draw_kind(unsigned depth) {
        constexpr unsigned deepest = 5;
        const bool leaf = depth + 1 >= deepest;
        const bool branch = !leaf && random_.one_in(2);
        const auto weight = [&](const kind& k) {
            return (leaf && k.fewest > 0) || (branch && k.fewest == 0) ? 0 : k.weight;
        };
        unsigned sum = 0;
        for (const kind& k : kinds_) {
            sum += weight(k);
        }
        unsigned at = random_.below(sum);
        for (const kind& k : kinds_) {
            if (at < weight(k)) {
                return k;
            }
            at -= weight(k);
        }
        return kinds_.front();
    }

    place draw_place() {
        constexpr std::array places{place::context, place::context, place::context,
                                    place::context, place::pool,    place::looper,
                                    place::loop,    place::threads, place::here};
        return places.at(random_.below(places.size()));
    }

    microseconds draw_time() {
        switch (random_.below(8)) {
        case 0:
            return microseconds(0);
        case 1:
            return std::chrono::hours(1);
        default:
            return microseconds(random_.below(500));
        }
    }

    body draw_body(unsigned depth) {
        body b;
        for (unsigned n = random_.between(1, depth == 0 ? 3 : 2); n > 0; --n) {
            step s;
            s.what = &draw_kind(depth);
            s.number = ++steps_;
            s.variant = random_.below(1000);
            s.index = random_.below(16);
            s.time = draw_time();
            s.where = draw_place();
            s.context = random_.below(result_.contexts);
            s.catches = !random_.one_in(3);
            // Often the minimum: programs are deep rather than wide.
            const unsigned most = random_.one_in(2) ? s.what->fewest : s.what->most;
            for (unsigned k = random_.between(s.what->fewest, most); k > 0; --k) {
                s.bodies.push_back(draw_body(depth + 1));
            }
            b.steps.push_back(std::move(s));
        }
        return b;
    }

    attack draw_attack() {
        attack a;
        a.after_steps = random_.one_in(3) ? 0 : random_.between(1, 40);
        a.time = microseconds(random_.one_in(2) ? 0 : random_.below(2000));
        a.by_task = a.after_steps != 0 && random_.one_in(3);
        for (unsigned n = random_.between(1, 3); n > 0; --n) {
            action each;
            constexpr std::array deeds{deed::stop_one,     deed::stop_all, deed::stop_all,
                                       deed::stop_runtime, deed::cancel,   deed::spawn,
                                       deed::post};
            each.what = deeds.at(random_.below(deeds.size()));
            each.index = random_.below(8);
            a.actions.push_back(each);
        }
        return a;
    }

    void reduce() {
        program& p = result_;
        if (!filter_.has(mode_names.at(static_cast<std::size_t>(p.how)))) {
            p.how = mode::started;
        }
        const auto gone = [&](const root& r) { return r.work.steps.empty(); };
        for (root& r : p.roots) {
            reduce(r.work, 1);
            r.detached = r.detached && filter_.has("detached");
        }
        std::erase_if(p.roots, gone);
        if (std::ranges::any_of(p.roots, [](const root& r) { return has_chain(r.work); })) {
            for (root& r : p.roots) {
                suit_chains(r.work);
            }
            std::erase_if(p.roots, gone);
        }
        for (root& r : p.roots) {
            suit_callbacks(r.work, false);
        }
        for (attack& a : p.attacks) {
            std::erase_if(a.actions, [&](const action& each) {
                return !filter_.has(deed_names.at(static_cast<std::size_t>(each.what)));
            });
            a.by_task = a.by_task && filter_.has("by_task");
        }
        std::erase_if(p.attacks, [](const attack& a) { return a.actions.empty(); });
        if (!filter_.has("in_flight")) {
            p.most_in_flight = UINT32_MAX;
        }
    }

    void reduce(body& b, unsigned depth) {
        std::erase_if(b.steps, [&](const step& s) {
            return depth > filter_.depth() || !filter_.has(s.what->name) || leaves(s) ||
                   filter_.drops(s.number) || (simulated_ && s.what->threads);
        });
        for (step& s : b.steps) {
            const char* const name = place_names.at(static_cast<std::size_t>(s.where));
            if (s.what->goes && (!filter_.has(name) || (simulated_ && !is_simulated(s.where)))) {
                s.where = place::context;
            }
            for (body& each : s.bodies) {
                reduce(each, depth + 1);
            }
        }
    }

    static bool has_chain(const body& b) {
        return std::ranges::any_of(b.steps, [](const step& s) {
            return std::string_view(s.what->name) == "chain" ||
                   std::ranges::any_of(s.bodies, &has_chain);
        });
    }
    /// Several threads leave the scopes of a chain simultaneously. Destructors that then wait for
    /// each other may not end if one of the scopes is on the heap, or if one of the tasks is on an
    /// executor that is not a context (architecture.md, "Cycles of destructors").
    static void suit_chains(body& b) {
        std::erase_if(
            b.steps, [](const step& s) { return std::string_view(s.what->name) == "scope_reset"; });
        for (step& s : b.steps) {
            if (s.where != place::here) {
                s.where = place::context;
            }
            for (body& each : s.bodies) {
                suit_chains(each);
            }
        }
    }

    /// A task on an executor that is not a context gets no callbacks from contexts. A destructor on
    /// the context's thread would wait for the task, and so for a function that this thread has yet
    /// to run (architecture.md, "Cycles of destructors").
    static void suit_callbacks(body& b, bool is_away) {
        for (step& s : b.steps) {
            if (is_away && s.where == place::context &&
                std::string_view(s.what->name) == "callback") {
                s.where = place::pool;
            }
            const bool stays = !s.what->goes || s.where == place::here;
            for (body& each : s.bodies) {
                suit_callbacks(each, stays ? is_away : s.where != place::context);
            }
        }
    }

    /// coil::run() destroys its context when it ends: no task may return to that context later.
    [[nodiscard]] bool leaves(const step& s) const {
        const std::string_view name = s.what->name;
        return result_.how == mode::coil_run && (name == "resume_on" || name == "schedule" ||
                                                 name == "async_task" || name == "loop_spawn");
    }

    /// Loopers, run_loops and separate threads are not available in the simulator.
    static bool is_simulated(place p) {
        return p == place::context || p == place::pool || p == place::here;
    }

    random_source random_;
    std::span<const kind> kinds_;
    const filter& filter_;
    const bool simulated_;
    unsigned steps_ = 0;
    program result_;
};

} // namespace lifetime_test
