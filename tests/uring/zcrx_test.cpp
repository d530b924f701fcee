// The area and refill ring of zero-copy receives, and their ring with 32-byte completions.

#include "support.hpp"
#include "support/zcrx_backend.hpp"

#include <coil/uring/zcrx_area.hpp>
#include <coil/uring/zcrx_ring.hpp>

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <net/if.h>
#include <sys/socket.h>

namespace uring_test {
namespace {

using coil_test::zcrx_backend;
using coil_test::zcrx_kernel;

constexpr std::size_t page = zcrx_kernel::page;

struct registered_area {
    explicit registered_area(std::size_t pages, unsigned refill, std::uint32_t first = 0)
        : area(pages * page, refill) {
        kernel->first_refill = first;
        id = area.register_with(ring.get_backend(), 1, 0);
    }

    /// A request for the socket 100.
    void receive() {
        ASSERT_TRUE(ring.push(prep::recv_zc(100, static_cast<std::uint32_t>(id)), 8));
        ASSERT_EQ(ring.enter(0), 1);
    }
    /// The pieces that have arrived: their offsets and lengths.
    std::vector<zcrx_completion> take() {
        std::vector<zcrx_completion> all;
        ring.enter(0);
        ring.for_each_cqe([&](const zcrx_completion& c) { all.push_back(c); });
        return all;
    }
    std::uint64_t offset(const zcrx_completion& c) const { return c.piece.off & ~zcrx_area_mask; }
    std::string text(const zcrx_completion& c) const {
        return {reinterpret_cast<const char*>(area.data()) + offset(c),
                static_cast<std::size_t>(c.base.res)};
    }
    void give_back(const zcrx_completion& c) {
        area.give_back(offset(c), static_cast<std::uint32_t>(c.base.res));
    }

    std::shared_ptr<zcrx_kernel> kernel = std::make_shared<zcrx_kernel>();
    zcrx_area area;
    zcrx_ring ring{{.entries = 8, .cq_entries = 256}, std::make_unique<zcrx_backend>(kernel)};
    int id = -1;
};

TEST(UringZcrx, ARequestHasTheLayoutThatTheKernelChecks) {
    const sqe s = prep::recv_zc(5, 9);
    EXPECT_EQ(s.opcode, static_cast<std::uint8_t>(opcode::recv_zc));
    EXPECT_EQ(s.fd, 5);
    EXPECT_EQ(s.ioprio, recvsend_flag::recv_multishot);
    EXPECT_EQ(s.zcrx_ifq_idx, 9U);
    EXPECT_EQ(s.addr + s.off + s.len + s.addr3 + s.msg_flags + s.flags, 0U);
}

TEST(UringZcrx, PiecesAreReceivedAndReturned) {
    registered_area t(4, 4);
    ASSERT_EQ(t.id, 7);
    t.receive();
    t.kernel->arrive(100, "one");
    t.kernel->arrive(100, std::string(page + 1, 'x'));
    EXPECT_TRUE(t.ring.needs_enter());
    const auto pieces = t.take();
    ASSERT_EQ(pieces.size(), 3U);
    EXPECT_EQ(t.text(pieces[0]), "one");
    EXPECT_EQ(t.text(pieces[1]), std::string(page, 'x'));
    EXPECT_EQ(t.text(pieces[2]), "x");
    EXPECT_EQ(t.kernel->pieces_out(), 3U);
    for (const auto& c : pieces) {
        EXPECT_EQ(c.base.user_data, 8U);
        EXPECT_TRUE(has_more(c.base));
        t.give_back(c);
    }
    EXPECT_EQ(t.kernel->pieces_out(), 0U);
    t.kernel->end(100, 0);
    const auto end = t.take();
    ASSERT_EQ(end.size(), 1U);
    EXPECT_EQ(end[0].base.res, 0);
    EXPECT_FALSE(has_more(end[0].base));
    EXPECT_TRUE(t.kernel->violations.empty());
}

// The cursors of the refill ring are 32-bit counters that wrap around.
TEST(UringZcrx, TheRefillRingWrapsAround) {
    for (const std::uint32_t first : {0U, 0x7ffffffeU, 0xfffffff0U, 0xffffffffU}) {
        registered_area t(8, 4, first);
        t.receive();
        for (int round = 0; round < 100; ++round) {
            const std::string sent = "piece " + std::to_string(round);
            t.kernel->arrive(100, sent);
            const auto pieces = t.take();
            ASSERT_EQ(pieces.size(), 1U);
            EXPECT_EQ(t.text(pieces[0]), sent);
            t.give_back(pieces[0]);
        }
        EXPECT_LE(t.area.held_back(), 4U); // the kernel consumes entries only when it needs pages
        t.kernel->consume_refill();
        t.area.flush();
        EXPECT_EQ(t.kernel->pieces_out(), 0U);
        EXPECT_EQ(t.area.held_back(), 0U);
        EXPECT_EQ(t.kernel->violations, std::vector<std::string>{});
    }
}

// The kernel consumes the ring only when it needs memory, and pages have several pieces.
TEST(UringZcrx, ReturnsThatDoNotFitAreHeldBackAndMovedLater) {
    registered_area t(8, 4, 0xfffffffe);
    t.kernel->shares_pages = true;
    t.receive();
    for (int i = 0; i < 100; ++i) {
        t.kernel->arrive(100, std::string(200, static_cast<char>('a' + i % 26)));
    }
    const auto pieces = t.take();
    ASSERT_EQ(pieces.size(), 100U);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        EXPECT_EQ(t.text(pieces[i]), std::string(200, static_cast<char>('a' + i % 26)));
        t.give_back(pieces[i]);
    }
    EXPECT_EQ(t.area.held_back(), 96U);
    t.area.flush(); // the ring is full
    EXPECT_EQ(t.area.held_back(), 96U);
    for (std::size_t left = 96; left > 0; left -= 4) {
        t.kernel->consume_refill();
        t.area.flush();
        EXPECT_EQ(t.area.held_back(), left - 4);
    }
    EXPECT_EQ(t.kernel->pieces_out(), 0U);
    EXPECT_EQ(t.kernel->violations, std::vector<std::string>{});
}

TEST(UringZcrx, RandomOrdersOfReturnsLoseNothing) {
    for (unsigned seed = 1; seed <= 50; ++seed) {
        std::mt19937 random(seed);
        registered_area t(16, 4, static_cast<std::uint32_t>(random()));
        t.kernel->shares_pages = random() % 2 == 0;
        t.receive();
        std::vector<zcrx_completion> out;
        for (int step = 0; step < 300; ++step) {
            if (out.size() < 8 && random() % 2 == 0) {
                t.kernel->arrive(100, std::string(1 + random() % 3000, 'd'));
                while (t.kernel->has_data(100) || t.ring.has_completions()) {
                    for (const auto& c : t.take()) {
                        if (has_more(c.base)) {
                            out.push_back(c);
                        } else { // the returned pages are still held back
                            ASSERT_EQ(c.base.res, -ENOMEM);
                            ASSERT_GT(t.area.held_back(), 0U);
                            t.area.flush();
                            t.receive();
                        }
                    }
                }
            } else if (!out.empty()) {
                const std::size_t i = random() % out.size();
                t.give_back(out[i]);
                out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
        for (const auto& c : out) {
            t.give_back(c);
        }
        while (t.area.held_back() > 0) {
            t.kernel->consume_refill();
            t.area.flush();
        }
        EXPECT_EQ(t.kernel->pieces_out(), 0U) << seed;
        EXPECT_EQ(t.kernel->violations, std::vector<std::string>{}) << seed;
    }
}

TEST(UringZcrx, AnExhaustedAreaEndsTheRequest) {
    registered_area t(2, 4);
    t.receive();
    t.kernel->arrive(100, std::string(3 * page, 'x'));
    const auto pieces = t.take();
    ASSERT_EQ(pieces.size(), 3U);
    EXPECT_EQ(pieces[2].base.res, -ENOMEM);
    EXPECT_FALSE(has_more(pieces[2].base));
    t.give_back(pieces[0]);
    t.receive();
    const auto rest = t.take();
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(t.offset(rest[0]), t.offset(pieces[0]));
}

TEST(UringZcrx, TheNewestRequestCanBeTakenBackBeforeItIsSubmitted) {
    registered_area t(2, 4);
    for (std::uint64_t i = 1; i <= 8; ++i) {
        EXPECT_TRUE(t.ring.push(prep::nop(), 8 * i));
    }
    EXPECT_FALSE(t.ring.push(prep::nop(), 1));
    EXPECT_EQ(t.ring.sq_ready(), 8U);
    EXPECT_EQ(t.ring.pop_ready(), 64U);
    EXPECT_EQ(t.ring.sq_ready(), 7U);
    EXPECT_TRUE(t.ring.push(prep::recv_zc(100, 7), 72));
    EXPECT_EQ(t.ring.enter(0), 8);
    EXPECT_EQ(t.ring.sq_ready(), 0U);
    EXPECT_TRUE(t.kernel->has_request(100));
}

TEST(UringZcrx, NumbersThatAreNotValidAreRefused) {
    EXPECT_THROW(zcrx_area(0, 4), std::system_error);
    EXPECT_THROW(zcrx_area(page, 0), std::system_error);
    EXPECT_THROW(zcrx_area(page, 32769), std::system_error);
    EXPECT_THROW(zcrx_area(std::size_t{1} << 41, 4), std::system_error);
    const zcrx_area rounded(1, 5);
    EXPECT_EQ(rounded.size(), static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    EXPECT_EQ(rounded.refill_entries(), 8U);
}

// ---- the running kernel

class UringZcrxOnLinux : public with_io_uring {
protected:
    std::unique_ptr<zcrx_ring> open() {
        try {
            return std::make_unique<zcrx_ring>(zcrx_ring::options{.entries = 8, .cq_entries = 16},
                                               make_linux_backend());
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::invalid_argument) << e.what();
            return nullptr;
        }
    }
};

#define COIL_OPEN(name)                                                                            \
    const auto name = open();                                                                      \
    if (!name)                                                                                     \
    GTEST_SKIP() << "this kernel lacks deferred task work (Linux 6.1)"

// More completions than the queue has entries, so that the queue wraps around several times.
TEST_F(UringZcrxOnLinux, CompletionsOf32BytesAreReadInOrder) {
    COIL_OPEN(r);
    std::uint64_t submitted = 0;
    std::uint64_t completed = 0;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 7; ++i) {
            ASSERT_TRUE(r->push(prep::nop(), ++submitted));
        }
        ASSERT_EQ(r->enter(7), 7);
        r->for_each_cqe([&](const zcrx_completion& c) {
            EXPECT_EQ(c.base.user_data, ++completed);
            EXPECT_EQ(c.base.res, 0);
        });
        EXPECT_EQ(completed, submitted);
        EXPECT_FALSE(r->has_completions());
    }
}

TEST_F(UringZcrxOnLinux, AWaitEndsAtItsTimeout) {
    COIL_OPEN(r);
    const timespec soon{0, 1'000'000};
    EXPECT_EQ(r->enter(1, &soon), -ETIME);
}

TEST_F(UringZcrxOnLinux, LoopbackHasNoHardwareQueue) {
    COIL_OPEN(r);
    zcrx_area area(16 * page, 16);
    const int result = area.register_with(r->get_backend(), ::if_nametoindex("lo"), 0);
    // EPERM without CAP_NET_ADMIN, EINVAL before Linux 6.15.
    EXPECT_TRUE(result == -EOPNOTSUPP || result == -EPERM || result == -EINVAL) << result;
    EXPECT_EQ(area.held_back(), 0U);
}

TEST_F(UringZcrxOnLinux, AnInterfaceThatDoesNotExistIsRefused) {
    COIL_OPEN(r);
    zcrx_area area(16 * page, 16);
    const int result = area.register_with(r->get_backend(), 0x7ffffff0, 0);
    EXPECT_TRUE(result == -ENODEV || result == -EPERM || result == -EINVAL) << result;
}

TEST_F(UringZcrxOnLinux, ARequestForAQueueThatIsNotRegisteredFails) {
    COIL_OPEN(r);
    std::array<int, 2> fds{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    const descriptor one{fds[0]};
    const descriptor other{fds[1]};
    ASSERT_TRUE(r->push(prep::recv_zc(one, 0), 8));
    ASSERT_EQ(r->enter(1), 1);
    r->for_each_cqe([](const zcrx_completion& c) { EXPECT_EQ(c.base.res, -EINVAL); });
}

} // namespace
} // namespace uring_test
