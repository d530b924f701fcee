// The fault backend itself: each fault occurs, and the properties that it must preserve hold.

#include "support/descriptors.hpp"
#include "support/fault_backend.hpp"
#include "support/run.hpp"

#include <coil/uring/prep.hpp>
#include <coil/uring/ring.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include <poll.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::fault;
using coil_test::fault_backend;
using coil_test::fault_log;
using coil_test::fault_plan;
using uring::cqe;
using uring::sqe;
namespace prep = coil::uring::prep;

namespace {

/// A ring on a fault backend with a given plan, and the log of its faults.
class FaultBackend : public ::testing::Test {
protected:
    void open(const fault_plan& plan, unsigned entries = 64, std::uint64_t seed = 1) {
        uring::ring_options options;
        options.entries = entries;
        ring_.emplace(options, std::make_unique<fault_backend>(seed, plan, log_));
    }

    void push(sqe entry, std::uint64_t user_data, unsigned flags = 0) {
        sqe* const slot = ring_->acquire();
        ASSERT_NE(slot, nullptr);
        *slot = entry;
        slot->user_data = user_data << 3; // the lowest bits are reserved for the loop
        slot->flags |= static_cast<std::uint8_t>(flags);
        ring_->commit(slot);
    }
    /// Enters until `n` completions have arrived.
    std::vector<cqe> collect(std::size_t n) {
        std::vector<cqe> all;
        for (int backoff = 10'000; all.size() < n && backoff > 0; --backoff) {
            ring_->enter(1);
            ring_->for_each_cqe([&](const cqe& c) {
                all.push_back(c);
                all.back().user_data >>= 3;
            });
        }
        return all;
    }

    std::shared_ptr<fault_log> log_ = std::make_shared<fault_log>();
    std::optional<uring::ring> ring_;
};

fault_plan only(unsigned fault_plan::* rate, unsigned per_mille = 1000) {
    fault_plan plan;
    plan.*rate = per_mille;
    return plan;
}

TEST_F(FaultBackend, WithoutAPlanItBehavesAsTheKernel) {
    open({});
    for (unsigned i = 0; i < 50; ++i) {
        push(prep::nop(), i);
    }
    EXPECT_EQ(ring_->submit(), 50);
    const auto all = collect(50);
    for (unsigned i = 0; i < 50; ++i) {
        EXPECT_EQ(all.at(i).user_data, i);
    }
    EXPECT_EQ(log_->total(), 0U);
}

TEST_F(FaultBackend, Delays) {
    open(only(&fault_plan::delay));
    push(prep::nop(), 1);
    EXPECT_EQ(ring_->submit(), 1);
    int enters = 0;
    while (!ring_->has_completions()) {
        // Otherwise a spinning program would never enter the ring.
        EXPECT_TRUE(ring_->needs_enter());
        ring_->enter(0, uring::enter_flag::getevents);
        ++enters;
    }
    EXPECT_GT(enters, 0);
    EXPECT_LE(enters, 4);
    EXPECT_EQ((*log_)[fault::delay], 1U);
}

TEST_F(FaultBackend, AWaitDeliversDelayedCompletions) {
    open(only(&fault_plan::delay));
    push(prep::nop(), 1);
    EXPECT_EQ(ring_->enter(1), 1);
    EXPECT_TRUE(ring_->has_completions());
}

TEST_F(FaultBackend, AWaitForNothingEndsInTime) {
    open(fault_plan::everything());
    const auto begin = std::chrono::steady_clock::now();
    int r = 0;
    do {
        r = ring_->wait(10ms);
    } while (r == -EINTR || r == -EBUSY || r == -EAGAIN);
    EXPECT_EQ(r, -ETIME);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 10ms);
}

TEST_F(FaultBackend, Reorders_ButNeverWithinAChain) {
    open(only(&fault_plan::reorder, 500));
    for (int round = 0; round < 50; ++round) {
        for (unsigned i = 0; i < 30; ++i) {
            push(prep::nop(), i, i % 3 != 2 ? uring::sqe_flag::io_link : 0U);
        }
        std::vector<std::uint64_t> order;
        for (const cqe& c : collect(30)) {
            order.push_back(c.user_data);
        }
        const auto at = [&](unsigned i) { return std::find(order.begin(), order.end(), i); };
        for (unsigned i = 0; i < 30; ++i) {
            EXPECT_NE(at(i), order.end());
            EXPECT_TRUE(i % 3 == 0 || at(i - 1) < at(i)) << i;
        }
    }
    EXPECT_GT((*log_)[fault::reorder], 50U);
}

TEST_F(FaultBackend, AMultishotsCompletionsStayInOrder) {
    open(fault_plan::timing());
    const coil_test::pipe_pair p;
    std::vector<std::uint64_t> seen;
    int armed = 0;
    bool active = false;
    char c;
    for (int backoff = 10'000; seen.size() < 200 && backoff > 0; --backoff) {
        if (!active) {
            push(prep::poll_multishot(p.in, POLLIN), 7);
            ++armed;
            active = true;
        }
        p.put("x");
        for (const cqe& each : collect(1)) {
            seen.push_back(each.user_data);
            EXPECT_EQ(each.res & POLLIN, POLLIN);
            EXPECT_TRUE(active) << "a completion after the last";
            active = (each.flags & uring::cqe_flag::more) != 0;
        }
        while (::poll(std::array{::pollfd{p.in, POLLIN, 0}}.data(), 1, 0) > 0) {
            ASSERT_EQ(::read(p.in, &c, 1), 1);
        }
    }
    EXPECT_EQ(seen.size(), 200U);
    EXPECT_GT(armed, 1);
    EXPECT_EQ((*log_)[fault::end_multishot] > 0, armed > 1);
}

TEST_F(FaultBackend, EndsMultishotTimeouts) {
    open(only(&fault_plan::end_multishot));
    const uring::timespec soon{0, 100'000};
    push(prep::timeout_multishot(&soon, 100), 1);
    const auto all = collect(1);
    EXPECT_EQ(all.at(0).res, -ETIME);
    EXPECT_EQ(all.at(0).flags & uring::cqe_flag::more, 0U);
}

TEST_F(FaultBackend, RepeatsCompletionsOfMultishotTimeouts) {
    open(only(&fault_plan::duplicate));
    const uring::timespec soon{0, 100'000};
    push(prep::timeout_multishot(&soon, 3), 1);
    const auto all = collect(5); // the first and the second twice, the last once
    EXPECT_EQ(all.size(), 5U);
    EXPECT_EQ((*log_)[fault::duplicate], 2U);
}

TEST_F(FaultBackend, SubmitsFewerEntriesAndNeverSplitsAChain) {
    open(only(&fault_plan::partial_submission));
    for (int round = 0; round < 100; ++round) {
        for (unsigned i = 0; i < 12; ++i) {
            push(prep::nop(), i, i % 4 != 3 ? uring::sqe_flag::io_link : 0U);
        }
        while (ring_->sq_ready() > 0) {
            EXPECT_EQ(ring_->submit() % 4, 0);
        }
        EXPECT_EQ(collect(12).size(), 12U);
    }
    EXPECT_GT((*log_)[fault::partial_submission], 50U);
}

TEST_F(FaultBackend, RefusesToBeEnteredOnlyTemporarily) {
    open(only(&fault_plan::interrupt_enter));
    push(prep::nop(), 1);
    EXPECT_EQ(ring_->submit(), -EINTR);
    EXPECT_EQ(ring_->submit(), -EINTR);
    EXPECT_EQ(ring_->submit(), -EINTR);
    EXPECT_EQ(ring_->submit(), 1);
    open(only(&fault_plan::busy_enter));
    push(prep::nop(), 1);
    EXPECT_EQ(ring_->submit(), -EBUSY);
    open(only(&fault_plan::starve_enter));
    push(prep::nop(), 1);
    EXPECT_EQ(ring_->submit(), -EAGAIN);
}

TEST_F(FaultBackend, Overflows) {
    open(only(&fault_plan::overflow));
    for (unsigned i = 0; i < 30; ++i) {
        push(prep::nop(), i);
    }
    EXPECT_EQ(ring_->submit(), 30);
    EXPECT_TRUE(ring_->needs_enter());
    EXPECT_EQ(collect(30).size(), 30U);
    EXPECT_FALSE(ring_->needs_enter());
    EXPECT_GE((*log_)[fault::overflow], 10U);
}

TEST_F(FaultBackend, ARealOverflowLosesNothing) {
    uring::ring_options options;
    options.entries = 64;
    options.cq_entries = 64;
    ring_.emplace(options, std::make_unique<fault_backend>(1, fault_plan{}, log_));
    for (int batch = 0; batch < 4; ++batch) {
        for (unsigned i = 0; i < 64; ++i) {
            push(prep::nop(), i);
        }
        EXPECT_EQ(ring_->submit(), 64);
    }
    EXPECT_TRUE(ring_->needs_enter());
    EXPECT_EQ(collect(256).size(), 256U);
    EXPECT_EQ(ring_->cq_overflow(), 0U);
}

TEST_F(FaultBackend, ShortensTransfersButNoChains) {
    open(only(&fault_plan::shorten));
    const coil_test::pipe_pair p;
    const coil_test::socket_pair s;
    const coil_test::socket_pair datagrams(SOCK_DGRAM);
    char data[100] = {};
    const auto result = [&](sqe entry, unsigned flags = 0) {
        push(entry, 1, flags);
        if (flags != 0) {
            push(prep::nop(), 2);
        }
        return collect(flags != 0 ? 2 : 1).at(0).res;
    };
    const int written = result(prep::write(p.out, data, 100, 0));
    EXPECT_GT(written, 0);
    EXPECT_LT(written, 100);
    const int got = result(prep::read(p.in, data, static_cast<unsigned>(written), 0));
    EXPECT_TRUE(written <= 8 ? got == written : got < written) << got << " of " << written;
    EXPECT_LT(result(prep::send(s.a, data, 100, 0)), 100);
    EXPECT_EQ(result(prep::send(datagrams.a, data, 100, 0)), 100);
    EXPECT_EQ(result(prep::write(p.out, data, 100, 0), uring::sqe_flag::io_link), 100);
    EXPECT_GE((*log_)[fault::shorten], 2U);
}

TEST_F(FaultBackend, FailsWithoutExecuting) {
    open(only(&fault_plan::fail));
    const coil_test::pipe_pair p;
    push(prep::write(p.out, "x", 1, 0), 1);
    EXPECT_LT(collect(1).at(0).res, 0);
    EXPECT_EQ(::poll(std::array{::pollfd{p.in, POLLIN, 0}}.data(), 1, 0), 0);
    push(prep::socket(AF_UNIX, SOCK_STREAM, 0), 1);
    EXPECT_LT(collect(1).at(0).res, 0);
    // A failure ends a chain.
    push(prep::nop(), 1, uring::sqe_flag::io_link);
    push(prep::close(p.in), 2);
    const auto chain = collect(2);
    EXPECT_LT(chain.at(0).res, 0);
    EXPECT_EQ(chain.at(1).res, -ECANCELED);
    // A request that would lose a descriptor if it failed is executed.
    const int copy = ::dup(p.in);
    push(prep::close(copy), 1);
    EXPECT_EQ(collect(1).at(0).res, 0);
    EXPECT_GE((*log_)[fault::fail], 3U);
}

TEST_F(FaultBackend, DelaysTheNotificationOfAZeroCopySend) {
    fault_plan plan = only(&fault_plan::delay_notification);
    open(plan);
    const coil_test::listener server;
    const coil_test::descriptor client = server.connect();
    const coil_test::descriptor peer{::accept(server.socket, nullptr, nullptr)};
    push(prep::send_zc(client, "data", 4, 0, 0), 1);
    const auto all = collect(2);
    EXPECT_EQ(all.at(0).res, 4);
    EXPECT_NE(all.at(0).flags & uring::cqe_flag::more, 0U);
    EXPECT_NE(all.at(1).flags & uring::cqe_flag::notif, 0U);
    EXPECT_EQ((*log_)[fault::delay_notification], 1U);
}

TEST_F(FaultBackend, TheSameSeedInjectsTheSameFaults) {
    std::vector<std::vector<std::uint64_t>> orders;
    for (const std::uint64_t seed : {1U, 1U, 2U}) {
        open(fault_plan::everything(), 64, seed);
        std::vector<std::uint64_t> order;
        for (int round = 0; round < 20; ++round) {
            for (unsigned i = 0; i < 20; ++i) {
                push(prep::nop(), i);
            }
            for (const cqe& c : collect(20)) {
                order.push_back(c.user_data * 1000 - static_cast<std::uint64_t>(c.res));
            }
        }
        orders.push_back(order);
    }
    EXPECT_EQ(orders[0], orders[1]);
    EXPECT_NE(orders[0], orders[2]);
}

TEST_F(FaultBackend, APlanUnderAContextInjectsAllItsFaults) {
    auto log = std::make_shared<fault_log>();
    io_context ctx(coil_test::with([&](auto& o) {
        o.make_backend = fault_backend::factory(3, fault_plan::timing(), log);
        o.entries = 8;
    }));
    int done = 0;
    auto work = [](int& n) -> task<> {
        for (int i = 0; i < 50; ++i) {
            EXPECT_EQ(co_await io::nop(), 0);
        }
        ++n;
    };
    for (int i = 0; i < 100; ++i) {
        ctx.co_spawn(work(done));
    }
    ctx.run();
    EXPECT_EQ(done, 100);
    for (const fault f : {fault::delay, fault::reorder, fault::overflow, fault::partial_submission,
                          fault::interrupt_enter, fault::busy_enter, fault::starve_enter}) {
        EXPECT_GT((*log)[f], 0U) << static_cast<int>(f);
    }
}

} // namespace
