#pragma once

#include "hostile_arena.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

// Another user with write permission to a tree exchanges links, directories, files and FIFOs in it
// while the functions of coil::fs work on it. Whatever they return, nothing outside is read,
// written or removed, no device is opened, and they terminate. Each test takes COIL_SWAP_SECONDS,
// 0.7 by default.

namespace fs_test {

using namespace coil;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

inline std::chrono::milliseconds duration() {
    const char* const said = std::getenv("COIL_SWAP_SECONDS");
    return said != nullptr ? std::chrono::seconds(std::atoi(said)) : 700ms;
}

/// Expects that there were rounds and exchanges. If a duration is set, prints their numbers for
/// swappers.bash.
inline void report(std::uint64_t rounds, std::uint64_t exchanges) {
    EXPECT_GT(rounds, 0U);
    EXPECT_GT(exchanges, 0U);
    if (std::getenv("COIL_SWAP_SECONDS") != nullptr) {
        std::printf("swapped: %ju rounds, %ju exchanges\n", std::uintmax_t{rounds},
                    std::uintmax_t{exchanges});
        std::fflush(stdout); // a child process exits without flushing
    }
}

/// Opening a device without a driver, a socket, or a FIFO without a reader fails with ENXIO. In a
/// directory that only this user and root can change, files are opened without a prior check.
inline void expect_no_device_opened(const arena& a, const std::error_code& ec) {
    if (a.kind().by_stranger) {
        ASSERT_NE(ec, std::errc::no_such_device_or_address);
    }
}

class FsSwapper : public testing::TestWithParam<attack> {
protected:
    void SetUp() override {
        if (GetParam().by_stranger && ::geteuid() != 0) {
            GTEST_SKIP() << "only root can run a process of another user";
        }
        if (changes_process() && FS_TEST_FORKS == 0) {
            GTEST_SKIP() << "ThreadSanitizer does not support threads in a child process";
        }
    }

    /// Runs a test, in a child process if the attack changes the process permanently.
    void attacked(const std::function<void()>& test) const {
        if (!changes_process()) {
            test();
            return;
        }
        const std::string complaint = coil_test::in_child([&]() -> std::string {
            test();
            return HasFailure() ? "failed in the child process" : "";
        });
        EXPECT_EQ(complaint, "");
    }

    /// Repeats the function while names in the tree are exchanged.
    void while_swapped(arena& a, const std::vector<std::string>& names,
                       const std::function<void(io_context&)>& once,
                       const std::vector<std::string>& among = {}) const {
        std::vector<std::string> here;
        for (const std::string& name : names) {
            here.push_back("tree/" + name);
        }
        const swapper attacker(a, here, among.empty() ? a.names_aside() : here);
        if (GetParam().lacks_openat2) {
            ASSERT_TRUE(coil_test::forbid(SYS_openat2, EPERM));
            ASSERT_EQ(::syscall(SYS_openat2, -1, nullptr, nullptr, 0), -1);
            ASSERT_EQ(errno, EPERM);
        }
        if (GetParam().few_descriptors) {
            limit_descriptors();
        }
        const clock_type::time_point end = clock_type::now() + duration();
        const std::uint64_t before = attacker.exchanges();
        io_context context;
        std::uint64_t rounds = 0;
        for (; clock_type::now() < end && !HasFatalFailure(); ++rounds) {
            once(context);
            a.expect_outside_untouched();
        }
        report(rounds, attacker.exchanges() - before);
    }

private:
    static bool changes_process() { return GetParam().lacks_openat2 || GetParam().few_descriptors; }
};

} // namespace fs_test
