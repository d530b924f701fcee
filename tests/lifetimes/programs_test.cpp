// Random programs on several contexts and executors, which are stopped, destroyed or left by an
// exception at any time, by any thread. Everything must end within a second, and nothing may be
// left: no local, no descriptor, no memory (LeakSanitizer), no waiting handle.
//
// Environment variables:
// - COIL_LIFETIME_SEED=n: runs this seed only, COIL_LIFETIME_TIMES times.
// - COIL_LIFETIME_FIRST, COIL_LIFETIME_LAST: a range of seeds.
// - COIL_LIFETIME_WITHOUT=on,pool,...: without these families of steps, places, modes and attacks.
// - COIL_LIFETIME_DROP=3,17: without these steps; COIL_LIFETIME_ONLY=3,17: without all others
//   (reduce.bash finds them).
// - COIL_LIFETIME_DEPTH=n: limits the nesting.
// - COIL_LIFETIME_LIMIT_MS=n: replaces the limit of a second.
// - COIL_LIFETIME_PRINT=1: prints every program before it runs.
// - COIL_LIFETIME_GDB=1: prints all stacks of a program that hangs.
//
// tests/lifetimes/run.bash runs many seeds.

#include "lifetimes/draw.hpp"
#include "lifetimes/real_program.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

/// ThreadSanitizer does not see how libstdc++ counts the owners of an exception, and reports a race
/// between the last owner and an earlier reader.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { // NOLINT: its name
    return "race:std::__exception_ptr::exception_ptr::_M_release\n"
           "race:std::logic_error::~logic_error\n"
           "race:std::runtime_error::~runtime_error\n";
}

#if COIL_SANITIZED
extern "C" void __sanitizer_symbolize_pc(void* pc, const char* format, char* out, std::size_t size);

namespace {

/// Name resolution keeps two pipes open: they must exist before descriptors are counted.
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
    // A killed process that takes long to end is reaped by a separate thread.
    for (int n = 0; n < 2000 && before != coil_test::open_descriptors(); ++n) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(before, coil_test::open_descriptors()) << "descriptors leaked";
    if (testing::Test::HasFailure()) {
        ADD_FAILURE() << "replay: " << text;
    }
}

TEST(RandomLifetimes, G1_G4_G5_G9_NothingIsLeftHoweverTheyEnd) {
    // creates the objects that exist until the process exits
    coil::run([]() -> task<> { co_await coil::blocking([] {}); }());
    if (const auto seed = lifetime_number("COIL_LIFETIME_SEED", 0)) {
        for (auto n = lifetime_number("COIL_LIFETIME_TIMES", 1); n > 0 && !HasFailure(); --n) {
            play_seed(seed);
        }
        return;
    }
    const auto first = lifetime_number("COIL_LIFETIME_FIRST", 1);
    const auto last = lifetime_number(
        "COIL_LIFETIME_LAST",
        first + static_cast<unsigned>(coil_test::rounds(coil_test::sanitized ? 200 : 800, 40'000)));
    for (auto seed = first; seed <= last && !HasFailure(); ++seed) {
        play_seed(seed);
    }
}

} // namespace

} // namespace lifetime_test
