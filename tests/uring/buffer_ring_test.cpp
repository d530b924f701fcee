#include "support.hpp"

#include <coil/uring/buffer_ring.hpp>

#include <array>
#include <fstream>
#include <initializer_list>
#include <string_view>
#include <thread>
#include <type_traits>

#include <sys/socket.h>

namespace uring_test {
namespace {

static_assert(std::is_nothrow_move_constructible_v<buffer_ring>);
static_assert(!std::is_copy_constructible_v<buffer_ring>);

struct socket_pair {
    socket_pair() {
        int fds[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
            throw std::system_error(errno, std::generic_category(), "socketpair");
        }
        in = descriptor{fds[0]};
        out = descriptor{fds[1]};
    }
    void send(std::string_view text) const {
        EXPECT_EQ(::send(out, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    }
    descriptor in;
    descriptor out;
};

constexpr std::size_t buffer_size = 16;
constexpr unsigned the_group = 5;

// A ring and the memory for the tests' buffers.
class UringBufferRing : public with_io_uring {
protected:
    ring r{16};
    std::array<std::array<char, buffer_size>, 8> memory{};

    void SetUp() override {
        with_io_uring::SetUp();
        if (IsSkipped()) {
            return;
        }
        buffer_ring trial;
        if (trial.setup(r, 0xffff, 1, false) == -EINVAL) {
            GTEST_SKIP() << "this kernel has no buffer rings (Linux 5.19)";
        }
    }

    bool incremental() {
        buffer_ring trial;
        return trial.setup(r, 0xffff, 1, true) == 0;
    }

    void give(buffer_ring& buffers, std::initializer_list<std::uint16_t> ids) {
        for (const std::uint16_t id : ids) {
            buffers.add(memory.at(id).data(), buffer_size, id);
        }
        buffers.publish();
    }

    std::string_view content(const cqe& c, std::size_t offset = 0) const {
        return {memory.at(buffer_id(c)).data() + offset, static_cast<std::size_t>(c.res)};
    }

    static sqe recv(int fd, std::size_t len = buffer_size) {
        sqe s = prep::recv(fd, nullptr, len, 0);
        s.flags = sqe_flag::buffer_select;
        s.buf_group = the_group;
        return s;
    }

    std::string refusal(unsigned group, unsigned entries, bool inc, std::errc expected) {
        try {
            const buffer_ring buffers{r, group, entries, inc};
            return "it was not refused";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), expected) << e.what();
            return e.what();
        }
    }
};

#define COIL_NEEDS_INCREMENTAL()                                                                   \
    if (!incremental())                                                                            \
    GTEST_SKIP() << "this kernel has no incremental buffer rings (Linux 6.12)"

TEST_F(UringBufferRing, OperationsTakeTheBuffersInOrder) {
    buffer_ring buffers{r, the_group, 4};
    EXPECT_TRUE(buffers);
    EXPECT_EQ(buffers.entries(), 4U);
    EXPECT_EQ(buffers.group(), the_group);
    EXPECT_FALSE(buffers.incremental());
    const socket_pair s;
    s.send("first");
    EXPECT_EQ(run(r, recv(s.in)), -ENOBUFS); // no buffer yet, and no data is lost

    give(buffers, {6, 2, 3});
    EXPECT_EQ(buffers.tail(), 3);
    const cqe first = complete(r, recv(s.in));
    EXPECT_EQ(first.res, 5);
    ASSERT_TRUE(has_buffer(first));
    EXPECT_FALSE(has_more_buffer(first));
    EXPECT_FALSE(has_more(first));
    EXPECT_EQ(buffer_id(first), 6);
    EXPECT_EQ(content(first), "first");

    s.send("0123456789abcdefgh"); // more than a buffer holds
    const cqe second = complete(r, recv(s.in));
    EXPECT_EQ(buffer_id(second), 2);
    EXPECT_EQ(content(second), "0123456789abcdef");
    const cqe third = complete(r, recv(s.in));
    EXPECT_EQ(buffer_id(third), 3);
    EXPECT_EQ(content(third), "gh");

    s.send("x");
    const cqe none = complete(r, recv(s.in));
    EXPECT_EQ(none.res, -ENOBUFS);
    EXPECT_FALSE(has_buffer(none));
    give(buffers, {2});
    const cqe again = complete(r, recv(s.in));
    EXPECT_EQ(buffer_id(again), 2);
    EXPECT_EQ(content(again), "x");
}

TEST_F(UringBufferRing, TheBackendSeesABufferAfterPublish) {
    buffer_ring buffers{r, the_group, 4};
    const socket_pair s;
    s.send("text");
    buffers.add(memory[0].data(), buffer_size, 0);
    EXPECT_EQ(run(r, recv(s.in)), -ENOBUFS);
    buffers.publish();
    EXPECT_EQ(run(r, recv(s.in)), 4);
}

// The tail shares memory with the first entry.
TEST_F(UringBufferRing, AddingToTheFirstEntryLeavesTheTailAlone) {
    buffer_ring buffers{r, the_group, 2};
    give(buffers, {0, 1});
    const socket_pair s;
    s.send("0123456789abcdef0123456789abcdefx");
    EXPECT_EQ(buffer_id(complete(r, recv(s.in))), 0);
    buffers.add(memory[2].data(), buffer_size, 2);
    EXPECT_EQ(buffer_id(complete(r, recv(s.in))), 1);
    EXPECT_EQ(run(r, recv(s.in)), -ENOBUFS);
    buffers.publish();
    EXPECT_EQ(buffer_id(complete(r, recv(s.in))), 2);
}

TEST_F(UringBufferRing, ARequestWithoutDataHoldsNoBuffer) {
    buffer_ring buffers{r, the_group, 1};
    give(buffers, {0});
    const socket_pair idle;
    const socket_pair busy;
    queue(r, recv(idle.in), 1);
    ASSERT_EQ(r.submit(), 1);
    busy.send("busy");
    EXPECT_EQ(run(r, recv(busy.in)), 4); // the only buffer
    give(buffers, {0});
    idle.send("idle");
    const cqe c = next(r);
    EXPECT_EQ(c.user_data, 1U);
    EXPECT_EQ(content(c), "idle");
}

TEST_F(UringBufferRing, MultishotEndsWhenTheBuffersDoAndCanBeArmedAgain) {
    buffer_ring buffers{r, the_group, 2};
    give(buffers, {0, 1});
    const socket_pair s;
    queue(r, prep::recv_multishot(s.in, 0, the_group), 1);
    ASSERT_EQ(r.submit(), 1);
    for (const char* text : {"one", "two"}) {
        s.send(text);
        const cqe c = next(r);
        if (c.res == -EINVAL) {
            GTEST_SKIP() << "this kernel has no multishot recv";
        }
        EXPECT_EQ(content(c), text);
        EXPECT_TRUE(has_more(c));
    }
    s.send("three");
    const cqe end = next(r);
    EXPECT_EQ(end.user_data, 1U);
    EXPECT_EQ(end.res, -ENOBUFS);
    EXPECT_FALSE(has_more(end));

    give(buffers, {1, 0});
    queue(r, prep::recv_multishot(s.in, 0, the_group), 2);
    ASSERT_GE(r.submit(), 0);
    const cqe c = next(r);
    EXPECT_EQ(c.user_data, 2U);
    EXPECT_EQ(buffer_id(c), 1);
    EXPECT_EQ(content(c), "three");
    EXPECT_TRUE(has_more(c));
    ASSERT_EQ(::shutdown(s.out, SHUT_WR), 0);
    const cqe closed = next(r);
    EXPECT_EQ(closed.res, 0);
    EXPECT_FALSE(has_more(closed));
}

TEST_F(UringBufferRing, BundlesFillSeveralBuffersAtOnce) {
    if ((r.features() & feature::recvsend_bundle) == 0) {
        GTEST_SKIP() << "this kernel has no bundles";
    }
    buffer_ring buffers{r, the_group, 8};
    give(buffers, {0, 1, 2, 3, 4, 5, 6, 7});
    const socket_pair s;
    std::string text;
    for (int i = 0; i < 40; ++i) {
        text += static_cast<char>('A' + i);
    }
    s.send(text);
    sqe entry = recv(s.in, 0);
    entry.ioprio = recvsend_flag::bundle;
    // The kernel decides how many buffers one completion covers.
    std::size_t got = 0;
    int completions = 0;
    std::uint16_t expected = 0;
    for (; got < text.size(); ++completions) {
        const cqe c = complete(r, entry);
        ASSERT_GT(c.res, 0);
        EXPECT_EQ(buffer_id(c), expected);
        const auto n = static_cast<std::size_t>(c.res);
        EXPECT_EQ(content(c), text.substr(got, n));
        got += n;
        expected = static_cast<std::uint16_t>(expected + (n + buffer_size - 1) / buffer_size);
    }
    EXPECT_EQ(got, text.size());
    EXPECT_LT(completions, 3); // it needs three buffers
    EXPECT_EQ(expected, 3);
    s.send("next");
    EXPECT_EQ(buffer_id(complete(r, recv(s.in))), 3);
}

TEST_F(UringBufferRing, AnIncrementalRingFillsABufferGradually) {
    COIL_NEEDS_INCREMENTAL();
    buffer_ring buffers{r, the_group, 2, true};
    EXPECT_TRUE(buffers.incremental());
    give(buffers, {0, 1});
    const socket_pair s;
    queue(r, prep::recv_multishot(s.in, 0, the_group), 1);
    ASSERT_EQ(r.submit(), 1);

    std::array<std::size_t, 2> offset{};
    const auto receive = [&](std::string_view text, std::uint16_t id, bool kept) {
        s.send(text);
        const cqe c = next(r);
        ASSERT_EQ(c.res, static_cast<int>(text.size()));
        ASSERT_TRUE(has_buffer(c));
        EXPECT_EQ(buffer_id(c), id);
        EXPECT_EQ(content(c, offset.at(id)), text);
        EXPECT_EQ(has_more_buffer(c), kept);
        offset.at(id) += text.size();
    };
    receive("abc", 0, true);
    receive("defghij", 0, true);
    receive("klmnop", 0, false); // 3 + 7 + 6 = 16: full
    receive("0123", 1, true);
    receive("456789abcdef", 1, false);
    EXPECT_EQ(std::string_view(memory[0].data(), buffer_size), "abcdefghijklmnop");
    EXPECT_EQ(std::string_view(memory[1].data(), buffer_size), "0123456789abcdef");

    // A transfer ends with the buffer; the rest of the data goes into the next one.
    s.send("x");
    EXPECT_EQ(next(r).res, -ENOBUFS);
    give(buffers, {1, 0});
    EXPECT_EQ(run(r, recv(s.in, 1)), 1);
    s.send("0123456789abcdefghij");
    cqe c = complete(r, recv(s.in, 0));
    EXPECT_EQ(c.res, 15);
    EXPECT_EQ(buffer_id(c), 1);
    EXPECT_FALSE(has_more_buffer(c));
    c = complete(r, recv(s.in, 0));
    EXPECT_EQ(content(c), "fghij");
    EXPECT_EQ(buffer_id(c), 0);
    EXPECT_TRUE(has_more_buffer(c));
}

TEST_F(UringBufferRing, HeadReportsWhatTheBackendTook) {
    buffer_ring buffers{r, the_group, 4};
    if (buffers.head() == -EINVAL) {
        GTEST_SKIP() << "this kernel does not report the head (Linux 6.8)";
    }
    EXPECT_EQ(buffers.head(), 0);
    give(buffers, {0, 1, 2});
    const socket_pair s;
    for (int taken = 1; taken <= 3; ++taken) {
        s.send("x");
        EXPECT_EQ(run(r, recv(s.in)), 1);
        EXPECT_EQ(buffers.head(), taken);
    }
    EXPECT_EQ(buffers.head(), buffers.tail());
    buffers.close();
    EXPECT_EQ(buffers.head(), -EBADF);
}

TEST_F(UringBufferRing, NoBufferIsTakenSilently) {
    buffer_ring buffers{r, the_group, 8};
    if (buffers.head() == -EINVAL) {
        GTEST_SKIP() << "this kernel does not report the head (Linux 6.8)";
    }
    give(buffers, {0, 1, 2, 3, 4, 5, 6, 7});
    int taken = 0;
    const auto check = [&](const cqe& c, int result, bool takes) {
        EXPECT_EQ(c.res, result);
        EXPECT_EQ(has_buffer(c), takes);
        taken += takes ? 1 : 0;
        EXPECT_EQ(buffers.head(), taken);
    };
    const socket_pair s;
    check(complete(r, recv(-1)), -EBADF, false);
    queue(r, recv(s.in), 1);
    queue(r, prep::cancel(1), 2);
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        check(c, c.user_data == 1 ? -ECANCELED : 0, false);
    }
    sqe impatient = recv(s.in);
    impatient.msg_flags = MSG_DONTWAIT;
    check(complete(r, impatient), -EAGAIN, false);
    s.send("data");
    check(complete(r, recv(s.in)), 4, true);
    ASSERT_EQ(::shutdown(s.out, SHUT_WR), 0);
    check(complete(r, recv(s.in)), 0, false);
    check(complete(r, prep::recv_multishot(s.in, 0, the_group)), 0, false);

    // No data, but a buffer is consumed: only has_buffer() shows it.
    const descriptor empty{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    sqe read = prep::read(empty, nullptr, buffer_size, 0);
    read.flags = sqe_flag::buffer_select;
    read.buf_group = the_group;
    const cqe c = complete(r, read);
    check(c, 0, has_buffer(c));
}

TEST_F(UringBufferRing, AnIncrementalRingCutsDatagrams) {
    COIL_NEEDS_INCREMENTAL();
    buffer_ring buffers{r, the_group, 2, true};
    give(buffers, {0, 1});
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
    const descriptor in{fds[0]};
    const descriptor out{fds[1]};
    ASSERT_EQ(::send(out, "0123456789", 10, 0), 10);
    ASSERT_EQ(::send(out, "abcdefghij", 10, 0), 10);
    EXPECT_EQ(content(complete(r, recv(in))), "0123456789");
    const cqe c = complete(r, recv(in));
    EXPECT_EQ(content(c, 10), "abcdef");
    EXPECT_FALSE(has_more_buffer(c));
    // The rest of the datagram is lost.
    EXPECT_EQ(run(r, prep::recv(in, memory[7].data(), 1, MSG_DONTWAIT)), -EAGAIN);
}

TEST_F(UringBufferRing, AnIncrementalHeadMovesWhenABufferIsFull) {
    COIL_NEEDS_INCREMENTAL();
    buffer_ring buffers{r, the_group, 4, true};
    give(buffers, {0});
    const socket_pair s;
    s.send("0123456789abcdef");
    EXPECT_EQ(run(r, recv(s.in, 10)), 10);
    EXPECT_EQ(buffers.head(), 0);
    EXPECT_EQ(run(r, recv(s.in, 10)), 6);
    EXPECT_EQ(buffers.head(), 1);
}

TEST_F(UringBufferRing, TheTailWrapsAround) {
    buffer_ring buffers{r, the_group, 8};
    const descriptor zero{::open("/dev/zero", O_RDONLY | O_CLOEXEC)};
    ASSERT_GE(zero, 0);
    sqe read = prep::read(zero, nullptr, buffer_size, 0);
    read.flags = sqe_flag::buffer_select;
    read.buf_group = the_group;
    // 8 ids per round; the 16-bit tail wraps around twice, each time with all buffers in the ring.
    constexpr unsigned rounds = 2 * 65536 / 8 + 3;
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::uint16_t id = 0; id < 8; ++id) {
            memory.at(id)[0] = 'x';
            buffers.add(memory.at(id).data(), buffer_size, id);
        }
        buffers.publish();
        for (unsigned i = 0; i < 8; ++i) {
            queue(r, read, i);
        }
        ASSERT_EQ(r.submit_and_wait(8), 8);
        unsigned seen = 0;
        r.for_each_cqe([&](const cqe& c) {
            ASSERT_EQ(c.res, static_cast<int>(buffer_size)) << "round " << round;
            ASSERT_EQ(buffer_id(c), c.user_data) << "round " << round;
            ASSERT_EQ(memory.at(buffer_id(c))[0], 0);
            ++seen;
        });
        ASSERT_EQ(seen, 8U);
    }
    EXPECT_EQ(buffers.tail(), rounds * 8 % 65536);
    if (const int head = buffers.head(); head != -EINVAL) {
        EXPECT_EQ(head, buffers.tail());
    }
    EXPECT_EQ(run(r, read), -ENOBUFS);
}

TEST_F(UringBufferRing, TheLargestRingCanBeFull) {
    buffer_ring buffers{r, 0xffff, buffer_ring::max_entries};
    EXPECT_EQ(buffers.entries(), 32768U);
    EXPECT_EQ(buffers.group(), 65535U);
    for (unsigned i = 0; i < buffers.entries(); ++i) {
        buffers.add(memory[0].data(), buffer_size, static_cast<std::uint16_t>(2 * i));
    }
    buffers.publish();
    const socket_pair s;
    sqe entry = recv(s.in);
    entry.buf_group = 0xffff;
    for (int i = 0; i < 3; ++i) {
        s.send("x");
        EXPECT_EQ(buffer_id(complete(r, entry)), 2 * i);
    }
}

TEST_F(UringBufferRing, AGroupCanBeClosedAndMadeAgain) {
    const socket_pair s;
    buffer_ring buffers;
    EXPECT_FALSE(buffers);
    EXPECT_EQ(buffers.entries(), 0U);
    buffers.close();
    for (const unsigned entries : {4U, 2U, 8U}) {
        ASSERT_EQ(buffers.setup(r, the_group, entries, false), 0);
        EXPECT_EQ(buffers.tail(), 0);
        give(buffers, {1, 0});
        s.send("text");
        EXPECT_EQ(buffer_id(complete(r, recv(s.in))), 1);
        buffers.close();
        EXPECT_FALSE(buffers);
        s.send("y");
        EXPECT_EQ(run(r, recv(s.in)), -ENOBUFS); // no such group
        char byte = 0;
        EXPECT_EQ(::recv(s.in, &byte, 1, 0), 1);
    }
}

std::size_t pages_mapped() {
    std::size_t pages = 0;
    std::ifstream{"/proc/self/statm"} >> pages;
    return pages;
}

TEST_F(UringBufferRing, ClosingAndFailingGiveTheMemoryBack) {
    const buffer_ring taken{r, the_group + 1, 1};
    const std::size_t before = pages_mapped();
    ASSERT_GT(before, 0U);
    for (int i = 0; i < 200; ++i) { // half a MiB each time
        buffer_ring buffers{r, the_group, buffer_ring::max_entries};
        buffer_ring refused;
        ASSERT_EQ(refused.setup(r, the_group + 1, buffer_ring::max_entries, false), -EEXIST);
    }
    EXPECT_LT(pages_mapped(), before + 25 * 128); // 128 pages are half a MiB
}

TEST_F(UringBufferRing, ItMoves) {
    const socket_pair s;
    buffer_ring one{r, the_group, 4};
    give(one, {3});
    buffer_ring other{std::move(one)};
    EXPECT_FALSE(one); // NOLINT(bugprone-use-after-move): the moved-from state is tested
    EXPECT_EQ(one.head(), -EBADF);
    give(other, {4});
    s.send("x");
    EXPECT_EQ(buffer_id(complete(r, recv(s.in))), 3);

    buffer_ring third{r, the_group + 1, 4};
    third = std::move(other); // its own group is unregistered
    EXPECT_EQ(third.group(), the_group);
    s.send("x");
    EXPECT_EQ(buffer_id(complete(r, recv(s.in))), 4);
    const buffer_ring free_again{r, the_group + 1, 4};
    // NOLINTNEXTLINE(bugprone-use-after-move): it can be set up again
    EXPECT_EQ(other.setup(r, the_group, 4, false), -EEXIST);
    EXPECT_EQ(other.setup(r, the_group + 2, 4, false), 0);
}

TEST_F(UringBufferRing, ClosingEndsTheRequestsThatWaitForTheGroup) {
    const socket_pair s;
    {
        buffer_ring buffers{r, the_group, 4};
        give(buffers, {0, 1});
        queue(r, prep::recv_multishot(s.in, 0, the_group), 1);
        ASSERT_EQ(r.submit(), 1);
        s.send("one");
        EXPECT_EQ(next(r).res, 3);
    }
    s.send("two");
    const cqe c = next(r);
    EXPECT_EQ(c.user_data, 1U);
    EXPECT_EQ(c.res, -ENOBUFS);
    EXPECT_FALSE(has_more(c));
}

TEST_F(UringBufferRing, ItSurvivesAFork) {
    buffer_ring buffers{r, the_group, 4};
    give(buffers, {0});
    EXPECT_EQ(in_child([] { return std::string{}; }), "");
    give(buffers, {1, 2}); // must not write to a copy of the page that the kernel reads
    const socket_pair s;
    for (int id = 0; id < 3; ++id) {
        s.send("x");
        EXPECT_EQ(buffer_id(complete(r, recv(s.in))), id);
    }
}

TEST_F(UringBufferRing, ErrorsAreNumbersWithoutExceptions) {
    buffer_ring buffers;
    for (const unsigned entries : {0U, 3U, 65536U, 0x80000000U, ~0U}) {
        EXPECT_EQ(buffers.setup(r, the_group, entries, false), -EINVAL) << entries;
    }
    EXPECT_EQ(buffers.setup(r, 65536, 4, false), -EINVAL);
    EXPECT_FALSE(buffers);
    ASSERT_EQ(buffers.setup(r, the_group, 4, false), 0);
    EXPECT_EQ(buffers.setup(r, the_group + 1, 4, false), -EBUSY);
    EXPECT_TRUE(buffers);
    EXPECT_EQ(buffers.group(), the_group);
    buffer_ring second;
    EXPECT_EQ(second.setup(r, the_group, 4, false), -EEXIST);
    EXPECT_FALSE(second);

    // Classic provided buffers also occupy the group's number while it has buffers.
    EXPECT_EQ(run(r, prep::provide_buffers(memory[0].data(), buffer_size, 1, 9, 0)), 0);
    EXPECT_EQ(second.setup(r, 9, 4, false), -EEXIST);
}

TEST_F(UringBufferRing, OnlyTheRingsThreadMayRegister) {
    if ((r.setup_flags() & setup::single_issuer) == 0) {
        GTEST_SKIP() << "this kernel permits registration on every thread";
    }
    int error = 0;
    std::thread other{[&] {
        buffer_ring buffers;
        error = buffers.setup(r, the_group, 4, false);
    }};
    other.join();
    EXPECT_EQ(error, -EEXIST);
}

TEST_F(UringBufferRing, ExceptionMessagesSayWhatToDo) {
    EXPECT_NE(refusal(65536, 4, false, std::errc::invalid_argument).find("0 to 65535"),
              std::string::npos);
    EXPECT_NE(refusal(1, 12, false, std::errc::invalid_argument).find("power of two"),
              std::string::npos);
    const buffer_ring taken{r, 1, 4};
    EXPECT_NE(refusal(1, 4, false, std::errc::file_exists).find("group 1 "), std::string::npos);
}

TEST_F(UringBufferRing, BackendsWithoutItAreNamed) {
    auto filter = std::make_unique<filter_backend>();
    filter_backend& seam = *filter;
    ring old{ring_options{}, std::move(filter)};
    seam.refuse_control = [](register_op op) { return op == register_op::pbuf_ring ? -EINVAL : 0; };
    try {
        const buffer_ring buffers{old, 1, 4};
        FAIL() << "it was not refused";
    } catch (const std::system_error& e) {
        EXPECT_NE(std::string_view{e.what()}.find("Linux 5.19"), std::string_view::npos);
    }
    try {
        const buffer_ring buffers{old, 1, 4, true};
        FAIL() << "it was not refused";
    } catch (const std::system_error& e) {
        EXPECT_NE(std::string_view{e.what()}.find("Linux 6.12"), std::string_view::npos);
    }
    seam.refuse_control = [](register_op op) { return op == register_op::pbuf_ring ? -ENOMEM : 0; };
    try {
        const buffer_ring buffers{old, 1, 4};
        FAIL() << "it was not refused";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::not_enough_memory);
        EXPECT_NE(std::string_view{e.what()}.find("RLIMIT_MEMLOCK"), std::string_view::npos);
    }
    seam.refuse_control = [](register_op op) {
        return op == register_op::pbuf_status ? -EINVAL : 0;
    };
    const buffer_ring buffers{old, 1, 4};
    EXPECT_EQ(buffers.head(), -EINVAL);
}

TEST_F(UringBufferRing, AnUnregistrationThatFailsHarmsNothing) {
    COIL_SKIP_ON_EPOLL("the queue's memory is the application's alone");
    auto filter = std::make_unique<filter_backend>();
    filter_backend& seam = *filter;
    ring refusing{ring_options{}, std::move(filter)};
    buffer_ring buffers{refusing, the_group, 4};
    give(buffers, {0});
    seam.refuse_control = [](register_op op) {
        return op == register_op::unregister_pbuf_ring ? -EINVAL : 0;
    };
    buffers.close();
    EXPECT_FALSE(buffers);
    const socket_pair s;
    s.send("text");
    EXPECT_EQ(content(complete(refusing, recv(s.in))), "text"); // the kernel still has it
}

} // namespace
} // namespace uring_test
