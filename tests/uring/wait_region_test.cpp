#include "support.hpp"

#include <coil/uring/detail/wait_region.hpp>

#include <chrono>

// Waits whose arguments are in memory that is registered with the kernel.

namespace uring_test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

class WaitRegion : public with_io_uring {
protected:
    void SetUp() override {
        if (coil_test::on_epoll()) {
            GTEST_SKIP() << "the epoll backend registers no memory";
        }
        with_io_uring::SetUp();
        if (!IsSkipped() && !is_supported()) {
            GTEST_SKIP() << "the kernel does not register memory for waits (Linux 6.13)";
        }
    }

    static params disabled() {
        params p{};
        p.flags = setup::r_disabled | setup::single_issuer | setup::defer_taskrun;
        return p;
    }
    static bool is_supported() {
        const auto k = make_linux_backend();
        params p = disabled();
        backend::mapping m{};
        detail::wait_region region;
        EXPECT_EQ(k->setup(8, p, m), 0);
        region.open(*k);
        return region.get() != nullptr;
    }
    static ring enabled_later() {
        ring_options options;
        options.entries = 8;
        options.start_disabled = true;
        return ring(options);
    }
};

TEST_F(WaitRegion, TheKernelReadsTheTimeoutFromIt) {
    const auto k = make_linux_backend();
    params p = disabled();
    backend::mapping m{};
    ASSERT_EQ(k->setup(8, p, m), 0);
    detail::wait_region region;
    region.open(*k);
    ASSERT_NE(region.get(), nullptr);
    ASSERT_EQ(k->do_register(register_op::enable_rings, nullptr, 0), 0);
    *region.get() = {};
    region.get()->ts = {0, 30'000'000};
    region.get()->flags = reg_wait_flag::ts;
    const auto start = clock::now();
    EXPECT_EQ(k->enter(0, 1, enter_flag::getevents | enter_flag::ext_arg | enter_flag::ext_arg_reg,
                       nullptr, sizeof(reg_wait)),
              -ETIME);
    EXPECT_GE(clock::now() - start, 30ms);
    EXPECT_LT(clock::now() - start, 5s);
}

TEST_F(WaitRegion, ARingThatIsEnabledAlreadyHasNone) {
    const auto k = make_linux_backend();
    params p{};
    backend::mapping m{};
    ASSERT_EQ(k->setup(8, p, m), 0);
    detail::wait_region region;
    region.open(*k);
    EXPECT_EQ(region.get(), nullptr);
}

TEST_F(WaitRegion, ABackendMayRefuse) {
    filter_backend k;
    k.refuse_control = [](register_op op) { return op == register_op::mem_region ? -EINVAL : 0; };
    params p = disabled();
    backend::mapping m{};
    ASSERT_EQ(k.setup(8, p, m), 0);
    detail::wait_region region;
    region.open(k);
    EXPECT_EQ(region.get(), nullptr);
}

TEST_F(WaitRegion, TimeoutsAndMinimaOfARingThatWasEnabledLater) {
    ring r = enabled_later();
    ASSERT_EQ(r.enable(), 0);
    ASSERT_EQ(r.submit(), 0);
    for (int i = 0; i < 3; ++i) { // the same region again
        auto start = clock::now();
        EXPECT_EQ(r.wait(20ms), -ETIME);
        EXPECT_GE(clock::now() - start, 20ms);

        // at least 30 ms for two completions, then the first one ends the wait
        queue(r, prep::nop(), 1);
        timespec limit{10, 0};
        start = clock::now();
        EXPECT_EQ(r.enter(2, 0, &limit, 30'000), 1);
        EXPECT_GE(clock::now() - start, 30ms);
        EXPECT_LT(clock::now() - start, 5s);
        EXPECT_EQ(next(r).res, 0);

        // no minimum remains from before
        queue(r, prep::nop(), 2);
        EXPECT_EQ(r.wait(10s), 0);
        next(r);
    }
}

TEST_F(WaitRegion, AnAbsoluteTimeout) {
    ring r = enabled_later();
    ASSERT_EQ(r.enable(), 0);
    ASSERT_EQ(r.submit(), 0);
    const auto start = clock::now();
    const auto end = start.time_since_epoch() + 20ms;
    timespec until{std::chrono::duration_cast<std::chrono::seconds>(end).count(), (end % 1s) / 1ns};
    EXPECT_EQ(r.enter(1, enter_flag::abs_timer, &until), -ETIME);
    EXPECT_GE(clock::now() - start, 20ms);
    EXPECT_LT(clock::now() - start, 5s);
}

} // namespace
} // namespace uring_test
