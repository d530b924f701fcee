// Random scripts on all backends: see differential.hpp.

#include "conformance/differential.hpp"
#include "conformance/script.hpp"
#include "support/fault_backend.hpp"

namespace conformance {

namespace {

constexpr game<script, transfer_stage> transfers_and_files{random_script, play, 60, 16};

TEST(Differential, AllBackendsGiveTheSameResults) {
    const std::vector<backend> here = present_backends();
    if (here.size() < 2) {
        GTEST_SKIP() << "only one backend is available";
    }
    compare_all(transfers_and_files, here,
                static_cast<std::uint64_t>(coil_test::rounds(coil_test::sanitized ? 5 : 20, 300)));
}

/// A backend with a visible fault: its transfers are short.
class short_machine final : public machine {
public:
    short_machine()
        : context_(coil_test::with([](coil::io_context_options& options) {
              coil_test::fault_plan plan;
              plan.shorten = 1000;
              options.make_backend = coil_test::fault_backend::factory(1, plan);
          })),
          files_(backends()[1].boot()) {}

    void run(coil::task<> work) override { coil_test::run_on(context_, std::move(work)); }
    [[nodiscard]] std::string directory() const override { return files_->directory(); }

private:
    coil::io_context context_;
    std::unique_ptr<machine> files_; // provides the directory
};

TEST(Differential, ABrokenBackendIsFoundAndTheScriptShrinks) {
    const auto& g = transfers_and_files;
    const boot_function right = backends()[1].boot;
    const boot_function wrong = [] { return std::make_unique<short_machine>(); };
    std::uint64_t seed = 1;
    while (seed < 50 && !differ(g, right, wrong, random_script(seed, 60))) {
        ++seed;
    }
    ASSERT_LT(seed, 50U);
    const std::string text = story(g, right, wrong, random_script(seed, 60));
    EXPECT_NE(text.find("other: "), std::string::npos) << text;
    const script least = shrunk(random_script(seed, 60), [&](const script& fewer) {
        return differ(g, right, wrong, fewer);
    });
    EXPECT_LE(least.size(), 4U) << text;
}

} // namespace

} // namespace conformance
