// The memory of a peak of tasks is returned to the system.

#include "lifetimes/support.hpp"

#include <coil/core/detail/frame_allocator.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
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

/// Allowance for memory other than frames: the kernel's queues, the heap.
constexpr std::int64_t slack = std::int64_t{1} << 20;

constexpr std::size_t frame_bytes = 12'000;

task<> inner(std::chrono::microseconds time) { co_await sleep_for(time); }
/// Frames of two sizes; they end in a different order than they begin.
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

/// Short timers keep the context from being idle for long.
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
            const std::int64_t limit = before + before / 10 + slack;
            for (int more = 0; more < 30 && resident_bytes() >= limit; ++more) {
                co_await beats(100ms); // on a loaded machine the second above may not suffice
            }
            EXPECT_LT(resident_bytes(), limit);
        }
    };
    coil::run(work::all());
}

/// Names that do not fit into a std::string without an allocation.
ISOLATED_TEST(Memory, G5_TheNamesOfAPeakAreGivenBack) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitizers keep freed memory";
    }
    struct work {
        static std::string name(unsigned i) {
            return "a task with a long name, " + std::to_string(i);
        }
        static task<> detached(unsigned tasks) {
            for (unsigned i = 0; i < tasks; ++i) {
                coil::co_spawn(outer(i), name(i));
            }
            co_await sleep_for(1s);
        }
        static task<> children(unsigned tasks) {
            coil::scope all;
            for (unsigned i = 0; i < tasks; ++i) {
                all.spawn(outer(i), name(i));
            }
            co_await all.join();
        }
        static task<> all() {
            co_await children(1000);
            co_await detached(1000);
            const std::int64_t before = resident_bytes();
            co_await children(200'000);
            co_await sleep_for(1s);
            EXPECT_LT(resident_bytes(), before + before / 10 + slack);
            co_await detached(200'000);
            co_await sleep_for(1s);
            EXPECT_LT(resident_bytes(), before + before / 10 + slack);
        }
    };
    coil::run(work::all());
}

/// A thread's list of free frames may be destroyed before other thread_local objects, whose
/// destructors free frames.
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
            // Allocating works without the list as well.
            coil::detail::deallocate_frame(coil::detail::allocate_frame(frame_bytes), frame_bytes);
        }
    };
    const auto one_thread = [] {
        std::thread([] {
            // Constructed before the list, so destroyed after it.
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
    EXPECT_LT(resident_bytes(), before + 2 * slack); // 48 MiB would have leaked
}

} // namespace
