// Over-aligned locals of coroutines, in separate frames and in frames inside other frames.

#include "core/support.hpp"

#include <cstddef>
#include <cstdint>

using coil::task;
using core_test::drive;

namespace {

// The types are aligned, not the variables, because GCC 14 ignores the alignment of a variable in a
// coroutine's frame.
struct alignas(64) line {
    unsigned char bytes[64];
};
struct alignas(32) half_line {
    char bytes[32];
};

[[gnu::noinline]] bool aligned(const void* p, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

task<bool> with_local() {
    line here{};
    here.bytes[63] = 1;
    co_return aligned(&here, 64) && here.bytes[63] == 1;
}

task<bool> with_argument(line argument) { co_return aligned(&argument, 64); }

task<bool> across_a_suspension(char odd) {
    half_line small{{odd}};
    line big{};
    const bool first = co_await with_local();
    const bool second = co_await with_argument(big);
    co_return first&& second&& aligned(&small, 32) && aligned(&big, 64) && small.bytes[0] == odd;
}

TEST(AlignedFrame, LocalsOf64AreAligned) {
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(drive(with_local()));
    }
}

TEST(AlignedFrame, ArgumentsAreAligned) { EXPECT_TRUE(drive(with_argument(line{}))); }

TEST(AlignedFrame, FramesOfAwaitedTasksAreAligned) {
    for (char i = 0; i < 100; ++i) {
        EXPECT_TRUE(drive(across_a_suspension(i)));
    }
}

TEST(AlignedFrame, FramesOfSpawnedTasksAreAligned) {
    auto root = []() -> task<bool> {
        coil::join_handle<bool> a = coil::spawn(with_local());
        coil::join_handle<bool> b = coil::spawn(across_a_suspension('x'));
        const bool first = co_await a;
        co_return co_await b&& first;
    };
    EXPECT_TRUE(coil::run(root()));
}

} // namespace
