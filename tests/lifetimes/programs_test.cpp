// Random programs over several contexts and executors, which are stopped, destroyed or left by an
// exception at any moment, by any thread. All of a program ends within a second, and nothing is
// left of it: no local, no descriptor, no memory (LeakSanitizer), no handle that waits.
//
// COIL_LIFETIME_SEED=n: that one alone, as often as COIL_LIFETIME_TIMES says. COIL_LIFETIME_FIRST,
// COIL_LIFETIME_LAST: a range. COIL_LIFETIME_WITHOUT=on,pool,...: without these families of steps,
// places, modes and attacks. COIL_LIFETIME_DROP=3,17: without these steps; COIL_LIFETIME_ONLY=3,17:
// without all others (reduce.bash finds out which). COIL_LIFETIME_DEPTH=n: no deeper.
// COIL_LIFETIME_LIMIT_MS=n: another limit than a second. COIL_LIFETIME_PRINT=1: every program
// before it is played. COIL_LIFETIME_GDB=1: all stacks of one that hangs. tests/lifetimes/run.bash
// plays many.

#include "lifetimes/draw.hpp"
#include "lifetimes/real_program.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// ThreadSanitizer does not see how libstdc++'s own code counts the owners of an exception, and
/// takes the last of them for a race with what another has read.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { // NOLINT: its name
    return "race:std::__exception_ptr::exception_ptr::_M_release\n"
           "race:std::runtime_error::~runtime_error\n";
}

#if COIL_SANITIZED
extern "C" void __sanitizer_symbolize_pc(void* pc, const char* format, char* out, std::size_t size);

namespace {

/// What looks the names up keeps two pipes: they must be there before descriptors are counted.
[[maybe_unused]] const bool names_can_be_looked_up = [] {
    char name[64];
    __sanitizer_symbolize_pc(__builtin_return_address(0), "%f", name, sizeof name);
    return true;
}();

} // namespace
#endif

namespace lifetime_test {

namespace {

std::uint64_t lifetime_number(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

void play_seed(std::uint64_t seed) {
    const filter what_is_left;
    const program p = drawer(seed, step_kinds, what_is_left, false).draw();
    if (p.roots.empty()) {
        return;
    }
    const std::string text = text_of(p);
    if (std::getenv("COIL_LIFETIME_PRINT") != nullptr) {
        std::fputs(text.c_str(), stderr);
    }
    const auto before = coil_test::open_descriptors();
    {
        watchdog dog(text);
        real_program(p, dog).play_to_end();
    }
    EXPECT_EQ(before, coil_test::open_descriptors()) << "descriptors leaked";
    if (testing::Test::HasFailure()) {
        ADD_FAILURE() << "replay: " << text;
    }
}

TEST(RandomLifetimes, G1_G4_G5_G9_NothingIsLeftWhateverEndsThem) {
    coil::run([]() -> task<> { co_await coil::blocking([] {}); }()); // what lives as long as we do
    if (const auto seed = lifetime_number("COIL_LIFETIME_SEED", 0)) {
        for (auto n = lifetime_number("COIL_LIFETIME_TIMES", 1); n > 0 && !HasFailure(); --n) {
            play_seed(seed);
        }
        return;
    }
    const auto first = lifetime_number("COIL_LIFETIME_FIRST", 1);
    const auto last = lifetime_number(
        "COIL_LIFETIME_LAST",
        first + static_cast<unsigned>(coil_test::rounds(coil_test::sanitized ? 200 : 800, 10'000)));
    for (auto seed = first; seed <= last && !HasFailure(); ++seed) {
        play_seed(seed);
    }
}

} // namespace

} // namespace lifetime_test
