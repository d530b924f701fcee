#include <coil/context/detail/side_stacks.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

using coil::detail::side_stacks;

namespace {

/// A destructor that may continue when it is told to.
struct pause {
    bool is_over = false;
    void operator()(side_stacks& stacks) {
        const auto over = [this]() noexcept { return is_over; };
        while (!is_over) {
            stacks.wait(over);
        }
    }
};

TEST(SideStacks, AFunctionThatDoesNotWaitReturnsBeforeRun) {
    side_stacks stacks;
    bool has_run = false;
    bool was_here = false;
    stacks.run([&]() noexcept {
        has_run = true;
        was_here = stacks.is_here();
    });
    EXPECT_TRUE(has_run);
    EXPECT_TRUE(was_here);
    EXPECT_FALSE(stacks.is_here());
    EXPECT_FALSE(stacks.any_waits());
}

TEST(SideStacks, ThoseThatWaitReturnInAnyOrder) {
    side_stacks stacks;
    std::vector<pause> pauses(3);
    std::string order;
    for (std::size_t i = 0; i < pauses.size(); ++i) {
        stacks.run([&, i]() noexcept {
            pauses[i](stacks);
            order += static_cast<char>('0' + i);
        });
    }
    for (const std::size_t next : {1, 2, 0}) {
        EXPECT_TRUE(stacks.any_waits());
        stacks.resume();
        pauses[next].is_over = true;
        stacks.resume();
    }
    EXPECT_EQ(order, "120");
    EXPECT_FALSE(stacks.any_waits());
}

TEST(SideStacks, ResumeAllContinuesAWaitThatIsNotOver) {
    side_stacks stacks;
    int continued = 0;
    pause end;
    stacks.run([&]() noexcept {
        const auto over = [&end]() noexcept { return end.is_over; };
        while (!end.is_over) {
            stacks.wait(over);
            ++continued;
        }
    });
    stacks.resume_all();
    EXPECT_EQ(continued, 1);
    end.is_over = true;
    stacks.resume();
    EXPECT_EQ(continued, 2);
}

TEST(SideStacks, OnASideStackAFunctionIsCalledOnTheSameOne) {
    side_stacks stacks;
    std::uintptr_t outer = 0;
    std::uintptr_t inner = 0;
    stacks.run([&]() noexcept {
        outer = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        stacks.run([&]() noexcept {
            inner = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        });
    });
    EXPECT_LT(outer - inner, std::uintptr_t{64} * 1024);
}

TEST(SideStacks, AStackIsAlignedAndAsLargeAsThatOfAThread) {
    side_stacks stacks;
    stacks.run([]() noexcept {
        alignas(64) volatile char aligned[64] = {};
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&aligned[0]) % 64, 0U);
        volatile char large[200 * 1024];
        for (std::size_t at = 0; at < sizeof large; at += 1024) {
            large[at] = 1;
        }
        EXPECT_EQ(large[0], 1);
        EXPECT_STREQ(std::to_string(1.5).c_str(), "1.500000"); // needs an aligned stack
    });
}

/// Each stack has its own exceptions: those that it handles, and those that propagate on it.
TEST(SideStacks, ExceptionsOfSeveralStacks) {
    side_stacks stacks;
    pause first;
    pause second;
    std::string caught;
    const auto throws = [&](pause& before, const char* what) {
        try {
            throw std::runtime_error(what);
        } catch (const std::runtime_error&) {
            before(stacks);
            try {
                throw; // the one that this stack handles
            } catch (const std::runtime_error& again) {
                caught += again.what();
            }
        }
    };
    struct at_end {
        side_stacks& stacks;
        pause& before;
        int& propagating;
        ~at_end() {
            propagating = std::uncaught_exceptions();
            before(stacks);
            propagating += std::uncaught_exceptions();
        }
    };
    int propagating = 0;
    pause third;
    try {
        throw std::logic_error("the host's");
    } catch (const std::logic_error&) {
        stacks.run([&]() noexcept {
            EXPECT_EQ(std::current_exception(), nullptr);
            throws(first, "a");
        });
        stacks.run([&]() noexcept { throws(second, "b"); });
        stacks.run([&]() noexcept {
            try {
                const at_end waits{stacks, third, propagating};
                throw std::runtime_error("c");
            } catch (const std::runtime_error& error) {
                caught += error.what();
            }
        });
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        EXPECT_NE(std::current_exception(), nullptr);
    }
    EXPECT_EQ(std::current_exception(), nullptr);
    for (pause* each : {&first, &third, &second}) {
        each->is_over = true;
        stacks.resume();
    }
    EXPECT_EQ(caught, "acb");
    EXPECT_EQ(propagating, 2);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(SideStacks, ThousandsMayWait) {
    constexpr int many = 2000;
    side_stacks stacks;
    pause end;
    int ended = 0;
    for (int i = 0; i < many; ++i) {
        stacks.run([&]() noexcept {
            end(stacks);
            ++ended;
        });
    }
    end.is_over = true;
    stacks.resume();
    EXPECT_EQ(ended, many);
    EXPECT_FALSE(stacks.any_waits());
}

} // namespace
