// COIL_FAULT_SEED=n: every context of the program without an explicit backend gets one that delays,
// reorders and interrupts (fault_plan::timing), which no correct program notices. Each test has its
// own random sequence, derived from the seed and its name, so that a single test can be replayed.

#include "support/fault_environment.hpp"

#include "support/fault_backend.hpp"

#include <coil/context/detail/default_backend.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace coil_test {

namespace {

std::optional<std::uint64_t> fault_seed() {
    const char* const text = std::getenv("COIL_FAULT_SEED");
    if (text == nullptr) {
        return std::nullopt;
    }
    return std::strtoull(text, nullptr, 0);
}

std::uint64_t seed_of(const std::string& name) {
    std::uint64_t hash = *fault_seed();
    for (const char c : name) {
        hash = mixed(hash, static_cast<unsigned char>(c));
    }
    return hash;
}

class faulty_backends final : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo& test) override {
        coil::detail::default_backend_factory() =
            fault_backend::factory(seed_of(name_of(test)), fault_plan::timing());
    }
    void OnTestEnd(const testing::TestInfo& test) override {
        if (test.result()->Failed()) {
            std::printf("replay: COIL_FAULT_SEED=%llu %s --gtest_filter=%s\n",
                        static_cast<unsigned long long>(*fault_seed()),
                        testing::internal::GetArgvs().at(0).c_str(), name_of(test).c_str());
        }
    }
    static std::string name_of(const testing::TestInfo& test) {
        return std::string(test.test_suite_name()) + "." + test.name();
    }
};

// gtest_main defines main(), so this is installed by a static initializer.
[[maybe_unused]] const bool faults_are_installed = [] {
    if (under_faults()) {
        testing::UnitTest::GetInstance()->listeners().Append(new faulty_backends);
    }
    return true;
}();

} // namespace

bool under_faults() { return fault_seed().has_value(); }

} // namespace coil_test
