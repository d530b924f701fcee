#pragma once

#include "conformance/machines.hpp"
#include "support/run.hpp"

#include <coil/core/task.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Random scripts on all backends, which must give the same results. A script on which they disagree
// is shrunk and printed. COIL_DIFFERENTIAL_SEED=n runs a single script; COIL_DIFFERENTIAL_SEEDS=n
// runs n scripts, from seed COIL_DIFFERENTIAL_FIRST (1 by default) on.

namespace conformance {

using answers = std::vector<std::string>;

/// A kind of script: a vector of steps that to_string() prints.
template <class Script>
struct game {
    Script (*make)(std::uint64_t seed, std::size_t steps);
    coil::task<> (*play)(const Script& s, std::string directory, answers& results);
    std::size_t steps;
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

template <class Script>
answers answers_of(const game<Script>& g, machine& m, const Script& s) {
    answers a;
    try {
        m.run(g.play(s, m.directory(), a));
    } catch (const std::exception& e) {
        a.emplace_back(std::string("exception: ") + e.what());
    }
    return a;
}

using boot_function = std::function<std::unique_ptr<machine>()>;

template <class Script>
bool differ(const game<Script>& g, const boot_function& a, const boot_function& b,
            const Script& s) {
    return answers_of(g, *a(), s) != answers_of(g, *b(), s);
}

/// Describes a disagreement of two backends.
template <class Script>
std::string story(const game<Script>& g, const boot_function& a, const boot_function& b,
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

/// The first line in which two results differ, for a difference that does not occur again.
inline std::string first_difference(const answers& a, const answers& b) {
    const auto [of_a, of_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return "one: " + (of_a != a.end() ? *of_a : "nothing") +
           "\nother: " + (of_b != b.end() ? *of_b : "nothing") + '\n';
}

template <class Script>
void compare(const game<Script>& g, const std::vector<backend>& all, std::uint64_t seed) {
    const Script s = g.make(seed, g.steps);
    const std::string named = ", COIL_DIFFERENTIAL_SEED=" + std::to_string(seed);
    const answers first = answers_of(g, *all[0].boot(), s);
    for (const std::string& line : first) {
        EXPECT_TRUE(line.find("IMPOSSIBLE") == std::string::npos &&
                    line.find("WRONG") == std::string::npos)
            << all[0].name << named << ": " << line;
    }
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (const answers other = answers_of(g, *all[i].boot(), s); first != other) {
            ADD_FAILURE() << all[0].name << " and " << all[i].name << " differ" << named << '\n'
                          << first_difference(first, other)
                          << story(g, all[0].boot, all[i].boot, s);
        }
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

/// Stops at the first script that fails.
template <class Script>
void compare_all(const game<Script>& g, const std::vector<backend>& all, std::uint64_t usual) {
    const std::uint64_t chosen = number_from_environment("COIL_DIFFERENTIAL_SEED", 0);
    const std::uint64_t first =
        chosen != 0 ? chosen : number_from_environment("COIL_DIFFERENTIAL_FIRST", 1);
    const std::uint64_t count =
        chosen != 0 ? 1 : number_from_environment("COIL_DIFFERENTIAL_SEEDS", usual);
    for (std::uint64_t i = 0; i < count && !testing::Test::HasFailure(); ++i) {
        compare(g, all, first + i);
    }
}

} // namespace conformance
