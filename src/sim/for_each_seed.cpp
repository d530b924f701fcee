#include <coil/sim/for_each_seed.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include <signal.h>
#include <unistd.h>

// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizers' own name
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace coil::sim {

namespace {

std::atomic<std::uint64_t> played{0};

/// Uses only write(2): the process may be in any state.
void print_seed() noexcept {
    char text[64] = "coil: sim: this run has SEED=";
    std::size_t length = std::strlen(text);
    char digits[24];
    std::size_t count = 0;
    for (std::uint64_t n = played.load(std::memory_order_relaxed); count == 0 || n > 0; n /= 10) {
        digits[count++] = static_cast<char>('0' + n % 10);
    }
    while (count > 0) {
        text[length++] = digits[--count];
    }
    text[length++] = '\n';
    [[maybe_unused]] const auto n = ::write(STDERR_FILENO, text, length);
}

void on_fatal_signal(int number) {
    print_seed();
    ::signal(number, SIG_DFL);
    ::raise(number);
}

} // namespace

namespace detail {

seed_report::seed_report(std::uint64_t seed) noexcept {
    played.store(seed, std::memory_order_relaxed);
}

seed_report::~seed_report() {
    if (std::uncaught_exceptions() > exceptions_) {
        print_seed();
    }
}

void seed_report::failed() const noexcept { print_seed(); }

bool seeds_for(std::uint64_t count, const std::function<bool(std::uint64_t)>& f) {
    const bool one = std::getenv("SEED") != nullptr;
    const std::uint64_t first = one ? seed_from_environment(1) : 1;
    const std::uint64_t last = one ? first : count;
    struct handlers {
        handlers() noexcept {
            if (__sanitizer_set_death_callback != nullptr) {
                __sanitizer_set_death_callback(&print_seed);
            } else {
                segmentation = ::signal(SIGSEGV, &on_fatal_signal);
            }
            abortion = ::signal(SIGABRT, &on_fatal_signal);
        }
        ~handlers() {
            if (__sanitizer_set_death_callback != nullptr) {
                __sanitizer_set_death_callback(nullptr);
            } else {
                ::signal(SIGSEGV, segmentation);
            }
            ::signal(SIGABRT, abortion);
        }
        void (*segmentation)(int) = SIG_DFL;
        void (*abortion)(int) = SIG_DFL;
    };
    const handlers during;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        const seed_report report(seed);
        if (!f(seed)) {
            report.failed();
            return false;
        }
    }
    return true;
}

} // namespace detail

std::uint64_t seed_from_environment(std::uint64_t otherwise) noexcept {
    const char* const text = std::getenv("SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

} // namespace coil::sim
