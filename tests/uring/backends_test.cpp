// What io_uring and the epoll backend must agree on, one test for both: the same entries, the same
// completions.

#include "uring/backends.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>

namespace uring_test {
namespace {

COIL_ON_BOTH_BACKENDS(BothBackends);

// ---- chains

TEST_P(BothBackends, G13_AShortReadBreaksAChain) {
    ring r{small(), make()};
    pipe_pair p;
    ASSERT_EQ(::write(p.out, "abc", 3), 3);
    char buf[8];
    queue(r, prep::read(p.in, buf, 8, prep::current_position), 1, sqe_flag::io_link);
    queue(r, prep::nop(), 2, sqe_flag::io_link);
    queue(r, prep::nop(), 3);
    queue(r, prep::nop(), 4); // not part of the chain
    EXPECT_EQ(results(r, 4),
              (std::map<std::uint64_t, int>{{1, 3}, {2, -ECANCELED}, {3, -ECANCELED}, {4, 0}}));
}

TEST_P(BothBackends, G13_AChainWaitsForItsHead) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1, sqe_flag::io_link);
    queue(r, prep::nop_result(7), 2);
    queue(r, prep::nop(), 3);
    EXPECT_EQ(next(r).user_data, 3U);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(next(r).user_data, 1U);
    const cqe c = next(r);
    EXPECT_EQ(c.user_data, 2U);
    EXPECT_EQ(c.res, 7);
}

TEST_P(BothBackends, AChainWithAnInvalidEntryDoesNotStart) {
    ring r{small(), make()};
    const descriptor event{::eventfd(0, EFD_CLOEXEC)};
    const std::uint64_t one = 1;
    sqe wrong = prep::nop();
    wrong.opcode = 255;
    queue(r, prep::write(event, &one, sizeof one, prep::current_position), 1, sqe_flag::io_link);
    queue(r, wrong, 2, sqe_flag::io_link);
    queue(r, prep::nop(), 3);
    EXPECT_EQ(results(r, 3),
              (std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, -EINVAL}, {3, -ECANCELED}}));
    ::pollfd p{event, POLLIN, 0};
    EXPECT_EQ(::poll(&p, 1, 0), 0);
}

TEST_P(BothBackends, AFailureWithCqeSkipSilencesTheRestOfItsChain) {
    ring r{small(), make()};
    char byte = 0;
    const std::uint8_t silent = sqe_flag::cqe_skip_success;
    queue(r, prep::read(-1, &byte, 1, 0), 1, silent | sqe_flag::io_link);
    queue(r, prep::nop(), 2, sqe_flag::io_link);
    queue(r, prep::nop(), 3);
    queue(r, prep::nop(), 4);
    const cqe first = next(r);
    EXPECT_EQ(first.user_data, 1U);
    EXPECT_EQ(first.res, -EBADF);
    EXPECT_EQ(next(r).user_data, 4U);
    EXPECT_TRUE(is_quiet(r, 5ms));
}

TEST_P(BothBackends, ALinkTimeoutInTheMiddleOfAChain) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    const timespec soon{0, 5'000'000};
    const timespec late{60, 0};
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1, sqe_flag::io_link);
    queue(r, prep::link_timeout(&soon), 2, sqe_flag::io_link);
    queue(r, prep::nop(), 3);
    EXPECT_EQ(results(r, 3),
              (std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, -ETIME}, {3, -ECANCELED}}));
    queue(r, prep::nop(), 1, sqe_flag::io_link);
    queue(r, prep::link_timeout(&late), 2, sqe_flag::io_link);
    queue(r, prep::nop(), 3);
    EXPECT_EQ(results(r, 3), (std::map<std::uint64_t, int>{{1, 0}, {2, -ECANCELED}, {3, 0}}));
    EXPECT_EQ(run(r, prep::link_timeout(&late)), -EINVAL); // without a predecessor
}

TEST_P(BothBackends, ArgumentsOfAWaitingRequestMayBeDestroyedAfterSubmission) {
    ring r{small(), make()};
    pipe_pair p;
    char one[2] = {};
    char two[2] = {};
    {
        std::vector<::iovec> parts{{one, 2}, {two, 2}};
        queue(r, prep::readv(p.in, parts.data(), 2, prep::current_position), 1);
        ASSERT_EQ(r.submit(), 1);
        std::fill(parts.begin(), parts.end(), ::iovec{nullptr, 1});
    }
    ASSERT_EQ(::write(p.out, "abcd", 4), 4);
    EXPECT_EQ(next(r).res, 4);
    EXPECT_EQ(std::string_view(one, 2), "ab");
    EXPECT_EQ(std::string_view(two, 2), "cd");
}

// ---- drains

TEST_P(BothBackends, ADrainWaitsForAllBeforeAndHoldsBackAllAfterIt) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
    queue(r, prep::nop(), 2, sqe_flag::io_drain);
    queue(r, prep::nop(), 3);
    ASSERT_EQ(r.submit(), 3);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    for (const std::uint64_t expected : {1U, 2U, 3U}) {
        EXPECT_EQ(next(r).user_data, expected);
    }
}

// ---- time and cancellation

TEST_P(BothBackends, ATimeoutEndsAWaitForMore) {
    ring r{small(), make()};
    const timespec soon{0, 5'000'000};
    queue(r, prep::timeout(&soon), 1);
    EXPECT_EQ(r.submit_and_wait(3), 1);
    EXPECT_EQ(next(r).res, -ETIME);
}

TEST_P(BothBackends, ClocksAndWrongTimes) {
    ring r{small(), make()};
    std::timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const timespec soon{now.tv_sec, now.tv_nsec};
    EXPECT_EQ(run(r, prep::timeout(&soon, 0, timeout_flag::abs | timeout_flag::realtime)), -ETIME);
    const timespec negative{-1, 0};
    EXPECT_EQ(run(r, prep::timeout(&negative)), -EINVAL);
    const timespec short_time{0, 1000};
    queue(r, prep::timeout(&short_time, 0, timeout_flag::etime_success), 1, sqe_flag::io_link);
    queue(r, prep::nop(), 2);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, -ETIME}, {2, 0}}));
}

TEST_P(BothBackends, G3_ACancelledRequestTakesNothing) {
    ring r{small(), make()};
    stream_pair s;
    char byte = 0;
    queue(r, prep::recv(s.a, &byte, 1, 0), 1);
    queue(r, prep::cancel(1), 2);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, 0}}));
    ASSERT_EQ(::send(s.b, "x", 1, 0), 1);
    EXPECT_TRUE(is_quiet(r, 5ms));
    EXPECT_EQ(byte, 0);
    EXPECT_EQ(run(r, prep::recv(s.a, &byte, 1, 0)), 1);
    EXPECT_EQ(run(r, prep::cancel(1)), -ENOENT);
}

TEST_P(BothBackends, WaitersAreServedInOrder) {
    ring r{small(), make()};
    stream_pair s;
    std::array<char, 4> bytes{};
    for (std::size_t i = 0; i < 4; ++i) {
        queue(r, prep::recv(s.a, &bytes.at(i), 1, 0), i);
    }
    ASSERT_EQ(r.submit(), 4);
    queue(r, prep::cancel(1), 9);
    results(r, 2);
    ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
    const auto got = results(r, 3);
    EXPECT_EQ(got.size(), 3U);
    std::multiset<char> seen{bytes[0], bytes[2], bytes[3]};
    EXPECT_EQ(seen, (std::multiset<char>{'a', 'b', 'c'}));
    if (emulated()) {
        EXPECT_EQ(std::string_view(bytes.data(), 4), std::string_view("a\0bc", 4));
    }
}

// ---- sockets

TEST_P(BothBackends, WaitallContinuesUntilEverythingHasArrived) {
    ring r{small(), make()};
    stream_pair s;
    char text[6] = {};
    queue(r, prep::recv(s.a, text, 6, MSG_WAITALL), 1);
    ASSERT_EQ(r.submit(), 1);
    for (const char* part : {"ab", "cd", "ef"}) {
        EXPECT_TRUE(is_quiet(r, 3ms));
        ASSERT_EQ(::send(s.b, part, 2, 0), 2);
    }
    EXPECT_EQ(next(r).res, 6);
    EXPECT_EQ(std::string_view(text, 6), "abcdef");
    queue(r, prep::recv(s.a, text, 6, MSG_WAITALL), 2);
    ASSERT_EQ(r.submit(), 1);
    ASSERT_EQ(::send(s.b, "gh", 2, 0), 2);
    s.b.reset();
    EXPECT_EQ(next(r).res, 2); // end of file
    EXPECT_EQ(run(r, prep::recv(s.a, text, 6, 0)), 0);
    EXPECT_EQ(run(r, prep::send(s.a, "x", 1, 0)), -EPIPE); // and no SIGPIPE
}

TEST_P(BothBackends, TheEndOfAStreamAfterAShortReadIsReported) {
    ring r{small(), make()};
    stream_pair s;
    char text[16];
    // Registered and drained: new data must be reported by an event.
    for (int i = 0; i < 3; ++i) {
        queue(r, prep::recv(s.a, text, sizeof text, 0), 1);
        ASSERT_EQ(r.submit(), 1);
        ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
        EXPECT_EQ(next(r).res, 3);
    }
    ASSERT_EQ(::send(s.b, "last", 4, 0), 4);
    ASSERT_EQ(::shutdown(s.b, SHUT_WR), 0);
    EXPECT_EQ(run(r, prep::recv(s.a, text, sizeof text, 0)), 4);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(run(r, prep::recv(s.a, text, sizeof text, 0)), 0);
    }
}

TEST_P(BothBackends, ASendToAFullSocketContinuesWhenThereIsSpace) {
    ring r{small(), make()};
    stream_pair s;
    const int size = 4096;
    ASSERT_EQ(::setsockopt(s.a, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    const std::string large(1 << 20, 'x');
    queue(r, prep::send(s.a, large.data(), large.size(), MSG_WAITALL), 1);
    ASSERT_EQ(r.submit(), 1);
    std::size_t received = 0;
    std::vector<char> part(65536);
    while (received < large.size()) {
        r.enter(0, enter_flag::getevents);
        const ssize_t n = ::recv(s.b, part.data(), part.size(), MSG_DONTWAIT);
        if (n > 0) {
            received += static_cast<std::size_t>(n);
        }
    }
    EXPECT_EQ(next(r).res, static_cast<int>(large.size()));
}

TEST_P(BothBackends, G2_AReusedNumberDoesNotCompleteWaitersOfTheFirstFile) {
    ring r{small(), make()};
    char old_byte = 0;
    char new_byte = 0;
    const int number = [&] {
        stream_pair first;
        queue(r, prep::recv(first.a, &old_byte, 1, 0), 1);
        EXPECT_EQ(r.submit(), 1);
        const int fd = first.a;
        EXPECT_EQ(run(r, prep::close(fd)), 0);
        first.a = descriptor{};
        return fd;
    }();
    stream_pair second;
    if (second.a != number && second.b != number) {
        GTEST_SKIP() << "the number was not reused";
    }
    descriptor& here = second.a == number ? second.a : second.b;
    descriptor& there = second.a == number ? second.b : second.a;
    queue(r, prep::recv(here, &new_byte, 1, 0), 2);
    ASSERT_EQ(r.submit(), 1);
    ASSERT_EQ(::send(there, "n", 1, 0), 1);
    cqe c = next(r);
    if (c.user_data == 1) { // io_uring has kept the first file, whose other end is closed
        EXPECT_EQ(c.res, 0);
        c = next(r);
    }
    EXPECT_EQ(c.user_data, 2U);
    EXPECT_EQ(c.res, 1);
    EXPECT_EQ(new_byte, 'n');
    EXPECT_EQ(old_byte, 0);
    queue(r, prep::cancel_any(), 3); // also ends a request that still waits on the first file
    while (next(r).user_data != 3) {
    }
}

TEST_P(BothBackends, AfterAPlainCloseWaitersOfAReusedNumberComplete) {
    ring r{small(), make()};
    char byte[8];
    for (int round = 0; round < 20; ++round) {
        stream_pair s;
        // Twice, so that the second wait relies on the registration of the first.
        for (int i = 0; i < 2; ++i) {
            queue(r, prep::recv(s.a, byte, sizeof byte, 0), 1);
            ASSERT_EQ(r.submit(), 1);
            ASSERT_EQ(::send(s.b, "x", 1, 0), 1);
            ASSERT_EQ(next(r).res, 1);
        }
    } // closed by close(2), so that the numbers are reused
}

TEST_P(BothBackends, TwoRingsAcceptOnOneSocket) {
    ring one{small(), make()};
    ring two{small(), make()};
    const descriptor listening{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::socklen_t size = sizeof address;
    ASSERT_EQ(::bind(listening, reinterpret_cast<::sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(listening, 16), 0);
    ASSERT_EQ(::getsockname(listening, reinterpret_cast<::sockaddr*>(&address), &size), 0);
    queue(one, prep::accept(listening, nullptr, nullptr, SOCK_CLOEXEC), 1);
    queue(two, prep::accept(listening, nullptr, nullptr, SOCK_CLOEXEC), 2);
    ASSERT_EQ(one.submit(), 1);
    ASSERT_EQ(two.submit(), 1);
    std::array<descriptor, 2> clients;
    for (descriptor& client : clients) {
        client = descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        ASSERT_EQ(::connect(client, reinterpret_cast<::sockaddr*>(&address), size), 0);
    }
    EXPECT_GE(descriptor{next(one).res}, 0);
    EXPECT_GE(descriptor{next(two).res}, 0);
}

// ---- provided buffers and registered files

TEST_P(BothBackends, BuffersCanBeProvidedOneByOne) {
    ring r{small(), make()};
    std::array<std::array<char, 8>, 4> memory{};
    EXPECT_EQ(run(r, prep::provide_buffers(memory.data(), 8, 4, 3, 10)), 0);
    stream_pair s;
    ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
    sqe receive = prep::recv(s.a, nullptr, 8, 0);
    receive.buf_group = 3;
    const cqe c = complete(r, receive, sqe_flag::buffer_select);
    EXPECT_EQ(c.res, 3);
    ASSERT_TRUE(has_buffer(c));
    EXPECT_EQ(std::string_view(memory.at(buffer_id(c) - 10U).data(), 3), "abc");
    EXPECT_EQ(run(r, prep::remove_buffers(8, 3)), 3);
}

TEST_P(BothBackends, G6_AnOverflownQueueKeepsTheOrder) {
    ring_options options = small(8);
    options.cq_entries = 8;
    ring r{options, make()};
    for (std::uint64_t i = 0; i < 64; ++i) {
        queue(r, prep::nop(), i);
        ASSERT_EQ(r.enter(0), 1);
    }
    EXPECT_TRUE(r.overflowed());
    for (std::uint64_t i = 0; i < 64; ++i) {
        ASSERT_EQ(next(r).user_data, i);
    }
    EXPECT_FALSE(r.overflowed());
    EXPECT_EQ(r.cq_overflow(), 0U);
}

TEST_P(BothBackends, FilesAreReadWholeOnEveryThread) {
    ring r{small(), make()};
    const temporary_directory directory;
    const std::string path = directory / "file";
    std::string text(3 << 20, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) {
        text[i] = static_cast<char>(i * 31 >> 8);
    }
    const descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    EXPECT_EQ(run(r, prep::write(file, text.data(), static_cast<unsigned>(text.size()), 0)),
              static_cast<int>(text.size()));
    EXPECT_EQ(run(r, prep::fsync(file)), 0);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    std::string again(text.size() + 100, '\1');
    EXPECT_EQ(run(r, prep::read(file, again.data(), static_cast<unsigned>(again.size()), 0)),
              static_cast<int>(text.size()));
    again.resize(text.size());
    EXPECT_TRUE(again == text);
    EXPECT_EQ(run(r, prep::read(file, again.data(), 10, text.size() + 5)), 0);
}

TEST_P(BothBackends, G5_ARingCanBeClosedWithEverythingInFlight) {
    pipe_pair p;
    stream_pair s;
    std::array<char, 4> bytes{};
    const temporary_directory directory;
    const std::string fifo = directory / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    std::uint32_t word = 0;
    {
        ring r{small(), make()};
        const timespec late{60, 0};
        queue(r, prep::read(p.in, &bytes[0], 1, prep::current_position), 1);
        queue(r, prep::recv(s.a, &bytes[1], 1, 0), 2);
        queue(r, prep::timeout(&late), 3);
        queue(r, prep::poll_multishot(s.a, POLLIN), 4);
        queue(r, prep::openat(AT_FDCWD, fifo.c_str(), O_WRONLY | O_CLOEXEC), 5, sqe_flag::async);
        queue(r, prep::futex_wait(&word, 0), 6);
        queue(r, prep::splice(p.in, prep::current_position, s.a, prep::current_position, 1), 7);
        ASSERT_EQ(r.submit(), 7);
        // Every program should do this before it closes a ring.
        queue(r, prep::cancel_any(), 8);
        for (int left = 8; left > 0;) {
            const int error = r.wait(1ms);
            if (error == -ETIME) {
                queue(r, prep::cancel_any(), 9);
                ++left;
            }
            left -= static_cast<int>(r.for_each_cqe([](const cqe&) {}));
        }
    }
}

} // namespace
} // namespace uring_test
