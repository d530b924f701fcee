#pragma once

#include "conformance/machines.hpp"
#include "support/run.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

// Random scripts on all backends, which must yield the same results. A script on which they differ
// is shrunk and printed. COIL_DIFFERENTIAL_SEED=n runs a single script; COIL_DIFFERENTIAL_SEEDS=n
// runs n scripts, from seed COIL_DIFFERENTIAL_FIRST (1 by default) on.

namespace conformance {

using answers = std::vector<std::string>;

/// A kind of script: a vector of steps that to_string() prints. A stage has the resources that
/// scripts use one after the other: it is created with an empty directory, has the tasks open() and
/// close(), and is in its initial state again when a script has been played.
template <class Script, class Stage>
struct game {
    Script (*make)(std::uint64_t seed, std::size_t steps);
    coil::task<> (*play)(const Script& s, Stage& stage, answers& results);
    std::size_t steps;
    unsigned lanes; // stages on which scripts run at the same time
};

/// Shrinks a script to as few steps as `fails` permits.
template <class Script, class Fails>
Script shrunk(Script s, Fails fails) {
    for (std::size_t piece = s.size() / 2; piece > 0;) {
        bool removed = false;
        for (std::size_t at = 0; at + piece <= s.size();) {
            Script less = s;
            less.erase(less.begin() + static_cast<std::ptrdiff_t>(at),
                       less.begin() + static_cast<std::ptrdiff_t>(at + piece));
            if (fails(less)) {
                s = std::move(less);
                removed = true;
            } else {
                at += piece;
            }
        }
        if (!removed || piece > s.size()) {
            piece /= 2;
        }
    }
    return s;
}

template <class Script, class Stage>
coil::task<> play_alone(const game<Script, Stage>& g, std::string directory, const Script& s,
                        answers& results) {
    Stage stage(std::move(directory));
    co_await stage.open();
    co_await g.play(s, stage, results);
    co_await stage.close();
}

/// The results of one script on a machine that plays no other script.
template <class Script, class Stage>
answers answers_of(const game<Script, Stage>& g, machine& m, const Script& s) {
    answers a;
    try {
        m.run(play_alone(g, m.directory(), s, a));
    } catch (const std::exception& e) {
        a.emplace_back(std::string("exception: ") + e.what());
    }
    return a;
}

/// Plays every `g.lanes`th script, from the seed `first + lane` on.
template <class Script, class Stage>
coil::task<> play_lane(const game<Script, Stage>& g, std::string directory, std::uint64_t first,
                       std::size_t lane, std::span<answers> results) {
    if (g.lanes > 1) {
        directory += std::to_string(lane) + '/';
        const int made = co_await coil::io::mkdirat(AT_FDCWD, directory, 0700);
        EXPECT_EQ(made, 0);
    }
    Stage stage(std::move(directory));
    co_await stage.open();
    for (std::size_t i = lane; i < results.size(); i += g.lanes) {
        const Script s = g.make(first + i, g.steps);
        co_await g.play(s, stage, results[i]);
    }
    co_await stage.close();
}

template <class Script, class Stage>
coil::task<> play_lanes(const game<Script, Stage>& g, std::string directory, std::uint64_t first,
                        std::span<answers> results) {
    co_await coil::for_each_concurrent(
        std::views::iota(std::size_t{0}, std::size_t{g.lanes}), g.lanes,
        [&](std::size_t lane) { return play_lane(g, directory, first, lane, results); });
}

/// The results of `count` scripts on one machine, one per seed. After an exception, some results
/// are incomplete.
template <class Script, class Stage>
std::vector<answers> answers_of_seeds(const game<Script, Stage>& g, machine& m, std::uint64_t first,
                                      std::size_t count) {
    std::vector<answers> results(count);
    try {
        m.run(play_lanes(g, m.directory(), first, results));
    } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
    }
    return results;
}

using boot_function = std::function<std::unique_ptr<machine>()>;

template <class Script, class Stage>
bool differ(const game<Script, Stage>& g, const boot_function& a, const boot_function& b,
            const Script& s) {
    return answers_of(g, *a(), s) != answers_of(g, *b(), s);
}

/// Describes a difference between two backends.
template <class Script, class Stage>
std::string story(const game<Script, Stage>& g, const boot_function& a, const boot_function& b,
                  const Script& s) {
    const Script least = shrunk(s, [&](const Script& fewer) { return differ(g, a, b, fewer); });
    const answers of_a = answers_of(g, *a(), least);
    const answers of_b = answers_of(g, *b(), least);
    std::string text =
        "the script, shrunk to " + std::to_string(least.size()) + " steps:\n" + to_string(least);
    for (std::size_t i = 0; i < std::max(of_a.size(), of_b.size()); ++i) {
        const std::string one = i < of_a.size() ? of_a[i] : "nothing";
        const std::string other = i < of_b.size() ? of_b[i] : "nothing";
        text +=
            one == other ? "    " + one + '\n' : "    one: " + one + "\n    other: " + other + '\n';
    }
    return text;
}

/// The first line in which two results differ, in case the difference does not occur again.
inline std::string first_difference(const answers& a, const answers& b) {
    const auto [of_a, of_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return "one: " + (of_a != a.end() ? *of_a : "nothing") +
           "\nother: " + (of_b != b.end() ? *of_b : "nothing") + '\n';
}

inline bool is_possible(const answers& a) {
    return std::none_of(a.begin(), a.end(), [](const std::string& line) {
        return line.find("IMPOSSIBLE") != std::string::npos ||
               line.find("WRONG") != std::string::npos;
    });
}

/// Plays one script on all backends.
template <class Script, class Stage>
void compare(const game<Script, Stage>& g, const std::vector<backend>& all, std::uint64_t seed) {
    const Script s = g.make(seed, g.steps);
    const std::string named = "COIL_DIFFERENTIAL_SEED=" + std::to_string(seed);
    SCOPED_TRACE(named);
    const answers first = answers_of(g, *all[0].boot(), s);
    EXPECT_TRUE(is_possible(first)) << all[0].name << ": " << testing::PrintToString(first);
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (const answers other = answers_of(g, *all[i].boot(), s); first != other) {
            ADD_FAILURE() << all[0].name << " and " << all[i].name << " differ\n"
                          << first_difference(first, other)
                          << story(g, all[0].boot, all[i].boot, s);
        }
    }
}

/// Plays the scripts of `count` seeds on all backends. Scripts that fail are played again, alone.
template <class Script, class Stage>
void compare_seeds(const game<Script, Stage>& g, const std::vector<backend>& all,
                   std::uint64_t first, std::size_t count) {
    const std::string named = "COIL_DIFFERENTIAL_FIRST=" + std::to_string(first) +
                              " COIL_DIFFERENTIAL_SEEDS=" + std::to_string(count);
    SCOPED_TRACE(named);
    std::vector<std::vector<answers>> results;
    for (const backend& one : all) {
        results.push_back(answers_of_seeds(g, *one.boot(), first, count));
    }
    std::vector<std::uint64_t> suspects;
    for (std::size_t i = 0; i < count; ++i) {
        const answers& of_first = results[0][i];
        EXPECT_TRUE(is_possible(of_first))
            << all[0].name << ", seed " << first + i << ": " << testing::PrintToString(of_first);
        bool is_suspect = !is_possible(of_first);
        for (std::size_t k = 1; k < all.size(); ++k) {
            if (results[k][i] != of_first) {
                ADD_FAILURE() << all[0].name << " and " << all[k].name << " differ beside other "
                              << "scripts, seed " << first + i << '\n'
                              << first_difference(of_first, results[k][i]);
                is_suspect = true;
            }
        }
        if (is_suspect) {
            suspects.push_back(first + i);
        }
    }
    for (std::size_t i = 0; i < count && suspects.empty() && testing::Test::HasFailure(); ++i) {
        compare(g, all, first + i); // an expectation in a script failed
    }
    for (const std::uint64_t seed : suspects) {
        compare(g, all, seed);
    }
}

inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// The backends that are available.
inline std::vector<backend> present_backends() {
    std::vector<backend> here;
    for (const backend& k : backends()) {
        if (k.missing("") == nullptr) {
            here.push_back(k);
        }
    }
    return here;
}

/// Stops after the first round of scripts that fails.
template <class Script, class Stage>
void compare_all(const game<Script, Stage>& g, const std::vector<backend>& all,
                 std::uint64_t usual) {
    if (const std::uint64_t chosen = number_from_environment("COIL_DIFFERENTIAL_SEED", 0);
        chosen != 0) {
        compare(g, all, chosen);
        return;
    }
    constexpr std::uint64_t round = 250; // scripts per machine
    const std::uint64_t first = number_from_environment("COIL_DIFFERENTIAL_FIRST", 1);
    const std::uint64_t end = first + number_from_environment("COIL_DIFFERENTIAL_SEEDS", usual);
    for (std::uint64_t at = first; at < end && !testing::Test::HasFailure(); at += round) {
        compare_seeds(g, all, at, std::min(round, end - at));
    }
}

} // namespace conformance
