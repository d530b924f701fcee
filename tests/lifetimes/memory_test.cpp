// What a peak of tasks has taken is given back to the system.

#include "lifetimes/support.hpp"

#include <coil/core/frame_allocator.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace lifetime_test;

namespace {

std::int64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::int64_t all = 0;
    std::int64_t resident = 0;
    statm >> all >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

/// Room for what is no frame: the queues of the kernel, the heap.
constexpr std::int64_t slack = std::int64_t{1} << 20;

constexpr std::size_t frame_bytes = 12'000;

task<> inner(std::chrono::microseconds time) { co_await sleep_for(time); }
/// Two sizes, and an order in which they end that is not that in which they began.
task<> outer(unsigned i) {
    std::array<char, 300> local{};
    co_await inner(std::chrono::microseconds(i * 7919 % 300'000));
    EXPECT_EQ(local[i % local.size()], 0);
}

task<> peak(unsigned tasks) {
    coil::scope all;
    for (unsigned i = 0; i < tasks; ++i) {
        all.spawn(outer(i));
    }
    co_await all.join();
}

ISOLATED_TEST(Memory, G5_APeakOfAMillionTasksIsGivenBackWithinASecond) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitizers keep freed memory";
    }
    struct work {
        static task<> all() {
            co_await peak(1000);
            co_await sleep_for(300ms);
            const std::int64_t before = resident_bytes();
            co_await peak(1'000'000);
            co_await sleep_for(1s);
            EXPECT_LT(resident_bytes(), before + before / 10 + slack);
        }
    };
    coil::run(work::all());
}

/// Short timers keep the context from ever being idle for long.
ISOLATED_TEST(Memory, G5_APeakIsGivenBackBesideAHeartbeat) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitizers keep freed memory";
    }
    struct work {
        static task<> beats(std::chrono::milliseconds time) {
            for (auto left = time; left > 0ms; left -= 10ms) {
                co_await sleep_for(10ms);
            }
        }
        static task<> all() {
            co_await peak(1000);
            co_await beats(300ms);
            const std::int64_t before = resident_bytes();
            co_await peak(200'000);
            co_await beats(1s);
            EXPECT_LT(resident_bytes(), before + before / 10 + slack);
        }
    };
    coil::run(work::all());
}

/// A thread's list of free frames is gone when destructors of other thread_local objects run.
ISOLATED_TEST(Memory, G5_FramesFreedByTheLastDestructorsOfAThreadAreGivenBack) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitizers have no cache of frames";
    }
    constexpr std::size_t frames = 20; // more than a span has
    struct holder {
        std::vector<void*> held;
        ~holder() {
            for (void* const frame : held) {
                coil::detail::deallocate_frame(frame, frame_bytes);
            }
            // And one more to and fro, also without a list.
            coil::detail::deallocate_frame(coil::detail::allocate_frame(frame_bytes), frame_bytes);
        }
    };
    const auto one_thread = [] {
        std::thread([] {
            // Made before the list is, so it is destroyed after it.
            static thread_local holder last;
            last.held.reserve(frames);
            for (std::size_t i = 0; i < frames; ++i) {
                last.held.push_back(coil::detail::allocate_frame(frame_bytes));
                static_cast<char*>(last.held.back())[frame_bytes - 1] = 1;
            }
        }).join();
    };
    one_thread();
    const std::int64_t before = resident_bytes();
    for (int i = 0; i < 200; ++i) {
        one_thread();
    }
    EXPECT_LT(resident_bytes(), before + 2 * slack); // of 48 MiB that have been used
}

} // namespace
