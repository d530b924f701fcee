#pragma once

#include "support/random.hpp"

#include <coil/core/task.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// A random program: data generated from a seed before anything runs, so that it can be printed, and
// reduced by leaving steps out.

namespace lifetime_test {

using coil_test::random_source;
using std::chrono::microseconds;

class world;
struct step;

/// Where a task can move to.
enum class place : std::uint8_t { context, pool, looper, loop, threads, here };
inline constexpr std::array place_names{"context", "pool", "looper", "loop", "threads", "inline"};

/// A kind of step. Its name is that of its family in COIL_LIFETIME_WITHOUT.
struct kind {
    const char* name;
    unsigned weight;
    unsigned fewest; ///< the minimum number of bodies
    unsigned most;
    coil::task<> (*run)(world&, const step&);
    bool goes = false;    ///< moves to a place
    bool threads = false; ///< needs real threads
};

struct body {
    std::vector<step> steps;
};

/// One line of a program. The meaning of the numbers depends on the kind.
struct step {
    const kind* what = nullptr;
    unsigned number = 0;
    unsigned variant = 0;
    unsigned index = 0; ///< selects one of several objects of the world
    microseconds time{};
    place where = place::context;
    unsigned context = 0;
    bool catches = true; ///< its exceptions do not leave its task
    std::vector<body> bodies;
};

/// A top-level task.
struct root {
    unsigned context = 0;
    bool detached = false;
    body work;
};

enum class deed : std::uint8_t { stop_one, stop_all, stop_runtime, cancel, spawn, post };
inline constexpr std::array deed_names{"stop_one", "stop_all", "stop_runtime",
                                       "cancel",   "spawn",    "post"};

struct action {
    deed what = deed::stop_all;
    unsigned index = 0; ///< a context, or a root
};

/// What one thread does to the program at some time.
struct attack {
    unsigned after_steps = 0; ///< after this number of steps of all tasks; 0: after a time
    microseconds time{};
    bool by_task = false; ///< executed by the task that makes that step
    std::vector<action> actions;
};

/// How the contexts run.
enum class mode : std::uint8_t { started, run, runtime, block_on, coil_run, never };
inline constexpr std::array mode_names{"started",  "run",      "runtime",
                                       "block_on", "coil_run", "never"};

struct program {
    std::uint64_t seed = 0;
    mode how = mode::started;
    unsigned contexts = 1;
    unsigned entries = 64;
    unsigned most_in_flight = UINT32_MAX;
    bool throws = false;  ///< the main task, at its end
    bool waits = false;   ///< executors run what they have queued before they end
    bool forwards = true; ///< the order in which contexts are destroyed
    std::vector<root> roots;
    std::vector<attack> attacks;
};

/// Filters programs by environment variables.
class filter {
public:
    filter() {
        if (const char* const text = std::getenv("COIL_LIFETIME_WITHOUT")) {
            without_ = std::string(",") + text + ",";
        }
        if (const char* const text = std::getenv("COIL_LIFETIME_DROP")) {
            dropped_ = std::string(",") + text + ",";
        }
        if (const char* const text = std::getenv("COIL_LIFETIME_ONLY"); text && *text) {
            kept_ = std::string(",") + text + ",";
        }
        if (const char* const text = std::getenv("COIL_LIFETIME_DEPTH")) {
            depth_ = static_cast<unsigned>(std::strtoul(text, nullptr, 0));
        }
    }

    [[nodiscard]] bool has(std::string_view family) const {
        return without_.find("," + std::string(family) + ",") == std::string::npos;
    }
    [[nodiscard]] bool drops(unsigned number) const {
        const std::string name = "," + std::to_string(number) + ",";
        return dropped_.find(name) != std::string::npos ||
               (!kept_.empty() && kept_.find(name) == std::string::npos);
    }
    [[nodiscard]] unsigned depth() const { return depth_; }

private:
    std::string without_;
    std::string dropped_;
    std::string kept_;
    unsigned depth_ = 5;
};

inline void print(std::ostream& out, const body& b, unsigned depth) {
    for (const step& s : b.steps) {
        out << std::string(std::size_t{2} * depth, ' ') << '#' << s.number << ' ' << s.what->name;
        if (s.what->goes) {
            out << ' ' << place_names.at(static_cast<std::size_t>(s.where));
            if (s.where == place::context) {
                out << ' ' << s.context;
            }
        }
        out << " variant " << s.variant << " index " << s.index << " time " << s.time.count()
            << (s.catches ? "" : " throws on") << '\n';
        for (const body& each : s.bodies) {
            out << std::string(std::size_t{2} * depth + 1, ' ') << "{\n";
            print(out, each, depth + 1);
            out << std::string(std::size_t{2} * depth + 1, ' ') << "}\n";
        }
    }
}

inline std::string text_of(const program& p) {
    std::ostringstream out;
    out << "COIL_LIFETIME_SEED=" << p.seed << ": " << mode_names.at(static_cast<std::size_t>(p.how))
        << ", " << p.contexts << " contexts, " << p.entries << " entries";
    if (p.most_in_flight != UINT32_MAX) {
        out << ", " << p.most_in_flight << " in flight";
    }
    out << (p.throws ? ", main throws" : "") << (p.waits ? ", executors wait" : "")
        << (p.forwards ? "" : ", last context ends first") << '\n';
    for (const root& r : p.roots) {
        out << (r.detached ? "co_spawn" : "spawn") << " on " << r.context << " {\n";
        print(out, r.work, 1);
        out << "}\n";
    }
    for (const attack& a : p.attacks) {
        out << (a.by_task ? "a task" : "a thread") << " after ";
        if (a.after_steps != 0) {
            out << a.after_steps << " steps and ";
        }
        out << a.time.count() << " us:";
        for (const action& each : a.actions) {
            out << ' ' << deed_names.at(static_cast<std::size_t>(each.what)) << '(' << each.index
                << ')';
        }
        out << '\n';
    }
    return out.str();
}

/// Calls `f` with each step.
template <class F>
void for_each_step(const body& b, F&& f) {
    for (const step& s : b.steps) {
        f(s);
        for (const body& each : s.bodies) {
            for_each_step(each, f);
        }
    }
}

} // namespace lifetime_test
