// The number of contexts worth having: the affinity mask and the cgroup's CPU quota.

#include "context/fake_files.hpp"
#include "support/run.hpp"

#include <string>
#include <vector>

#include <sched.h>

namespace {

using coil::detail::quota_in_processors;

class Processors : public context_test::FakeFiles {};

TEST_F(Processors, QuotaOfVersion2) {
    EXPECT_EQ(quota_in_processors(root_, "0::/\n"), 0U); // no file
    put("cpu.max", "max 100000");
    EXPECT_EQ(quota_in_processors(root_, "0::/\n"), 0U);
    put("a/b/cpu.max", "150000 100000");
    EXPECT_EQ(quota_in_processors(root_, "0::/a/b\n"), 2U); // rounded up
    put("a/b/cpu.max", "200000 100000");
    EXPECT_EQ(quota_in_processors(root_, "0::/a/b\n"), 2U);
    put("a/b/cpu.max", "1000 100000");
    EXPECT_EQ(quota_in_processors(root_, "0::/a/b\n"), 1U); // at least one
    put("a/b/cpu.max", "400000 100000");
    put("a/cpu.max", "300000 100000");
    EXPECT_EQ(quota_in_processors(root_, "0::/a/b\n"), 3U); // the parent group allows less
    EXPECT_EQ(quota_in_processors(root_, "0::/a\n"), 3U);
    EXPECT_EQ(quota_in_processors(root_, "0::/elsewhere\n"), 0U);
}

TEST_F(Processors, QuotaOfVersion1) {
    put("cpu,cpuacct/x/cpu.cfs_quota_us", "250000");
    put("cpu,cpuacct/x/cpu.cfs_period_us", "100000");
    EXPECT_EQ(quota_in_processors(root_, "7:memory:/x\n4:cpu,cpuacct:/x\n0::/\n"), 3U);
    put("cpu,cpuacct/x/cpu.cfs_quota_us", "-1");
    EXPECT_EQ(quota_in_processors(root_, "4:cpu,cpuacct:/x\n"), 0U);
}

TEST_F(Processors, InvalidTextIsNoQuota) {
    put("cpu.max", "what is this");
    for (const char* text : {"", "\n", "0", "0:", "0::", "::::", "0::/\n\n\n"}) {
        EXPECT_EQ(quota_in_processors(root_, text), 0U) << text;
    }
}

TEST_F(Processors, TheAffinityMaskCounts) {
    const std::string complaint = coil_test::in_child([]() -> std::string {
        const std::vector<int> allowed = coil::detail::allowed_processors();
        if (allowed.empty()) {
            return "no processor";
        }
        ::cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(allowed.back()), &one);
        if (::sched_setaffinity(0, sizeof one, &one) != 0) {
            return "sched_setaffinity failed";
        }
        if (coil::detail::allowed_processors() != std::vector{allowed.back()}) {
            return "another processor";
        }
        return coil::usable_processors() == 1 ? "" : "not one";
    });
    EXPECT_EQ(complaint, "");
}

} // namespace
