// Random scripts on all kernels: what one answers the others answer. One that they disagree about
// is shrunk and printed. COIL_DIFFERENTIAL_SEED=n plays that one.

#include "conformance/machines.hpp"
#include "conformance/script.hpp"
#include "support/fault_kernel.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace conformance {

namespace {

using answers = std::vector<std::string>;

answers answers_of(machine& m, const script& s) {
    answers a;
    try {
        m.run(play(s, m.directory(), a));
    } catch (const std::exception& e) {
        a.emplace_back(std::string("exception: ") + e.what());
    }
    return a;
}

using boot_function = std::function<std::unique_ptr<machine>()>;

bool differ(const boot_function& a, const boot_function& b, const script& s) {
    return answers_of(*a(), s) != answers_of(*b(), s);
}

/// What a person needs to know of two kernels that disagree.
std::string story(const boot_function& a, const boot_function& b, const script& s) {
    const script least = shrunk(s, [&](const script& fewer) { return differ(a, b, fewer); });
    const answers of_a = answers_of(*a(), least);
    const answers of_b = answers_of(*b(), least);
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

void compare(const kernel& a, const kernel& b, std::uint64_t seed) {
    const script s = random_script(seed, 60);
    const answers of_a = answers_of(*a.boot(), s);
    for (const std::string& line : of_a) {
        EXPECT_EQ(line.find("IMPOSSIBLE"), std::string::npos)
            << a.name << ", COIL_DIFFERENTIAL_SEED=" << seed << ": " << line;
        EXPECT_EQ(line.find("WRONG"), std::string::npos)
            << a.name << ", COIL_DIFFERENTIAL_SEED=" << seed << ": " << line;
    }
    if (of_a != answers_of(*b.boot(), s)) {
        ADD_FAILURE() << a.name << " and " << b.name << " differ, COIL_DIFFERENTIAL_SEED=" << seed
                      << '\n'
                      << story(a.boot, b.boot, s);
    }
}

TEST(Differential, AllKernelsAnswerTheSame) {
    std::vector<kernel> here;
    for (const kernel& k : kernels()) {
        if (k.missing("") == nullptr) {
            here.push_back(k);
        }
    }
    if (here.size() < 2) {
        GTEST_SKIP() << "there is one kernel here";
    }
    const char* const chosen = std::getenv("COIL_DIFFERENTIAL_SEED");
    const std::uint64_t first = chosen != nullptr ? std::strtoull(chosen, nullptr, 0) : 1;
    const std::uint64_t last =
        chosen != nullptr
            ? first
            : static_cast<std::uint64_t>(coil_test::rounds(coil_test::sanitized ? 5 : 20, 300));
    for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
        for (std::size_t i = 1; i < here.size(); ++i) {
            compare(here[0], here[i], seed);
        }
    }
}

/// A kernel with a fault that a program notices: its transfers are short.
class short_machine final : public machine {
public:
    short_machine()
        : context_(coil_test::with([](coil::io_context_options& options) {
              coil_test::fault_plan plan;
              plan.shorten = 1000;
              options.make_kernel = coil_test::fault_kernel::factory(1, plan);
          })),
          files_(kernels()[1].boot()) {}

    void run(coil::task<> work) override { coil_test::run_on(context_, std::move(work)); }
    [[nodiscard]] std::string directory() const override { return files_->directory(); }

private:
    coil::io_context context_;
    std::unique_ptr<machine> files_; // whose directory it uses
};

TEST(Differential, ABrokenKernelIsFoundAndTheScriptShrinks) {
    const boot_function right = kernels()[1].boot;
    const boot_function wrong = [] { return std::make_unique<short_machine>(); };
    std::uint64_t seed = 1;
    while (seed < 50 && !differ(right, wrong, random_script(seed, 60))) {
        ++seed;
    }
    ASSERT_LT(seed, 50U);
    const std::string text = story(right, wrong, random_script(seed, 60));
    EXPECT_NE(text.find("other: "), std::string::npos) << text;
    const script least = shrunk(random_script(seed, 60),
                                [&](const script& fewer) { return differ(right, wrong, fewer); });
    EXPECT_LE(least.size(), 4U) << text;
}

} // namespace

} // namespace conformance
