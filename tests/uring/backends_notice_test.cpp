// What io_uring and the epoll backend must agree on in situations in which the backend's cached
// state may be wrong: a reused descriptor number, or a stream that seems to be drained.

#include "uring/backends.hpp"

#include <coil/uring/registered_files.hpp>

#include <array>
#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include <netinet/in.h>
#include <poll.h>

namespace uring_test {
namespace {

struct BothBackendsNotice : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsNotice);

/// A socket that listens on 127.0.0.1.
struct listener {
    listener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof address;
        auto* const name = reinterpret_cast<::sockaddr*>(&address);
        if (::bind(socket, name, size) != 0 || ::listen(socket, 16) != 0 ||
            ::getsockname(socket, name, &size) != 0) {
            throw std::system_error(errno, std::generic_category(), "listen");
        }
    }
    [[nodiscard]] descriptor connected() const {
        descriptor client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        if (::connect(client, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0) {
            throw std::system_error(errno, std::generic_category(), "connect");
        }
        return client;
    }
    descriptor socket;
    ::sockaddr_in address{};
};

struct tcp_ends {
    tcp_ends() {
        const listener l;
        a = l.connected();
        b = descriptor{::accept4(l.socket, nullptr, nullptr, SOCK_CLOEXEC)};
    }
    descriptor a;
    descriptor b;
};

void send_descriptor(int socket, int sent, const char* text) {
    alignas(::cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    ::iovec part{const_cast<char*>(text), std::strlen(text)};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &sent, sizeof sent);
    ASSERT_EQ(::sendmsg(socket, &message, 0), static_cast<ssize_t>(part.iov_len));
}

/// The descriptors that exec(2) would leave open.
std::set<int> inherited_descriptors() {
    std::set<int> found;
    for (int fd = 0; fd < 1024; ++fd) {
        if (const int flags = ::fcntl(fd, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0) {
            found.insert(fd);
        }
    }
    return found;
}

// ---- streams that only seem to be drained

/// Waits on `s.a` once, so that its readiness is cached from now on.
template <class Pair>
void wait_once(ring& r, const Pair& s) {
    char byte = 0;
    queue(r, prep::recv(s.a, &byte, 1, 0), 1);
    ASSERT_EQ(r.submit(), 1);
    ASSERT_EQ(::send(s.b, "x", 1, 0), 1);
    ASSERT_EQ(next(r).res, 1);
}

/// Consumes all events so far.
void consume_events(ring& r) { ASSERT_EQ(r.enter(0, enter_flag::getevents), 0); }

/// Expects the entry to complete without waiting for an event.
void expect_at_once(ring& r, const sqe& entry, int result) {
    queue(r, entry, 77);
    ASSERT_EQ(r.enter(0, enter_flag::getevents), 1);
    ASSERT_TRUE(r.has_completions());
    EXPECT_EQ(next(r).res, result);
}

TEST_P(BothBackendsNotice, APeekConsumesNothing) {
    ring r{small(), make()};
    tcp_ends s;
    char text[16];
    wait_once(r, s);
    ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
    consume_events(r);
    expect_at_once(r, prep::recv(s.a, text, sizeof text, MSG_PEEK), 3);
    expect_at_once(r, prep::recv(s.a, text, sizeof text, 0), 3);
}

TEST_P(BothBackendsNotice, UrgentDataSplitsAStream) {
    ring r{small(), make()};
    tcp_ends s;
    char text[16];
    wait_once(r, s);
    ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
    ASSERT_EQ(::send(s.b, "!", 1, MSG_OOB), 1);
    ASSERT_EQ(::send(s.b, "def", 3, 0), 3);
    consume_events(r);
    expect_at_once(r, prep::recv(s.a, text, sizeof text, 0), 3);
    expect_at_once(r, prep::recv(s.a, text, sizeof text, 0), 3);
}

TEST_P(BothBackendsNotice, ADescriptorInAStreamEndsAReceive) {
    ring r{small(), make()};
    stream_pair s;
    char text[16];
    wait_once(r, s);
    send_descriptor(s.b, s.b, "a");
    ASSERT_EQ(::send(s.b, "bc", 2, 0), 2);
    consume_events(r);
    expect_at_once(r, prep::recv(s.a, text, sizeof text, 0), 1);
    expect_at_once(r, prep::recv(s.a, text, sizeof text, 0), 2);
}

// ---- partial transfers

TEST_P(BothBackendsNotice, G2_AHalfFullBufferIsNotShared) {
    ring r{small(), make()};
    std::array<std::array<char, 8>, 2> memory{};
    EXPECT_EQ(run(r, prep::provide_buffers(memory.data(), 8, 2, 3, 0)), 0);
    const auto received = [](int fd, int flags) {
        sqe entry = prep::recv(fd, nullptr, 4, flags);
        entry.buf_group = 3;
        return entry;
    };
    stream_pair slow;
    stream_pair quick;
    queue(r, received(slow.a, MSG_WAITALL), 1, sqe_flag::buffer_select);
    ASSERT_EQ(::send(slow.b, "ab", 2, 0), 2);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::send(quick.b, "xyz", 3, 0), 3);
    const cqe other = complete(r, received(quick.a, 0), sqe_flag::buffer_select);
    EXPECT_EQ(other.res, 3);
    ASSERT_EQ(::send(slow.b, "cd", 2, 0), 2);
    const cqe c = next(r);
    EXPECT_EQ(c.res, 4);
    ASSERT_TRUE(has_buffer(c) && has_buffer(other));
    EXPECT_NE(buffer_id(c), buffer_id(other));
    EXPECT_EQ(std::string_view(memory.at(buffer_id(c)).data(), 4), "abcd");
    EXPECT_EQ(std::string_view(memory.at(buffer_id(other)).data(), 3), "xyz");
}

TEST_P(BothBackendsNotice, G3_ANonblockingCallReturnsTheBytesThatHaveArrived) {
    ring r{small(), make()};
    stream_pair s;
    char text[8];
    ASSERT_EQ(::send(s.b, "ab", 2, 0), 2);
    EXPECT_EQ(run(r, prep::recv(s.a, text, 8, MSG_WAITALL | MSG_DONTWAIT)), 2);
    EXPECT_EQ(run(r, prep::recv(s.a, text, 8, MSG_WAITALL | MSG_DONTWAIT)), -EAGAIN);
    ::iovec part{text, 8};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
    EXPECT_EQ(run(r, prep::recvmsg(s.a, &message, MSG_WAITALL | MSG_DONTWAIT)), 3);
}

TEST_P(BothBackendsNotice, WaitallTakesSeveralPacketsOfAConnection) {
    ring r{small(), make()};
    stream_pair s{SOCK_SEQPACKET};
    char text[6] = {};
    ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
    ASSERT_EQ(::send(s.b, "def", 3, 0), 3);
    EXPECT_EQ(run(r, prep::recv(s.a, text, 6, MSG_WAITALL)), 6);
    EXPECT_EQ(std::string_view(text, 6), "abcdef");
}

TEST_P(BothBackendsNotice, AFileIsReadWholeFromItsPositionToo) {
    ring r{small(), make()};
    const temporary_directory directory;
    const std::string path = directory / "file";
    const std::string text(256 << 10, 'x');
    const descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::fsync(file), 0);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM); // no read-ahead
    char byte = 0;
    ASSERT_EQ(::pread(file, &byte, 1, 0), 1);
    ASSERT_EQ(::lseek(file, 0, SEEK_SET), 0);
    std::string again(text.size(), '\1');
    EXPECT_EQ(run(r, prep::read(file, again.data(), static_cast<unsigned>(again.size()),
                                prep::current_position)),
              static_cast<int>(text.size()));
    EXPECT_TRUE(again == text);
}

// ---- reused numbers

TEST_P(BothBackendsNotice, AFilesNumberReusedByAPipeWaitsAsAPipe) {
    ring r{small(), make()};
    const temporary_directory directory;
    const std::string path = directory / "file";
    char text[8] = {};
    descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_EQ(::write(file, "0123456789", 10), 10);
    EXPECT_EQ(run(r, prep::read(file, text, 8, 5)), 5); // up to its end; its type is now known
    const int number = file;
    pipe_pair p;
    ASSERT_EQ(::dup3(p.in, number, O_CLOEXEC), number);
    queue(r, prep::read(number, text, 8, prep::current_position), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 2ms));
    ASSERT_EQ(::write(p.out, "abc", 3), 3);
    EXPECT_EQ(next(r).res, 3);
}

TEST_P(BothBackendsNotice, AMultishotPollDoesNotHideThatANumberWasReused) {
    ring r{small(), make()};
    char byte = 0;
    stream_pair first;
    const int number = first.a;
    queue(r, prep::poll_multishot(number, POLLIN), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 2ms));
    stream_pair second;
    ASSERT_EQ(::dup3(second.a, number, O_CLOEXEC), number);
    queue(r, prep::recv(number, &byte, 1, 0), 2);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 40ms)); // and revalidation has taken place
    ASSERT_EQ(::send(second.b, "n", 1, 0), 1);
    EXPECT_EQ(next(r).user_data, 2U);
    EXPECT_EQ(byte, 'n');
    queue(r, prep::cancel_any(), 3);
    while (next(r).user_data != 3) {
    }
}

/// A file with a lease: opening it for writing waits until the lease is given up.
struct leased_file {
    explicit leased_file(const std::string& path)
        : fd(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600)) {
        ::signal(SIGIO, SIG_IGN);
        if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) {
            throw std::system_error(errno, std::generic_category(), "F_SETLEASE");
        }
    }
    void give_back() const { ASSERT_EQ(::fcntl(fd, F_SETLEASE, F_UNLCK), 0); }
    descriptor fd;
};

TEST_P(BothBackendsNotice, G2_ANumberIsNotReusedWhileAThreadIsToWorkOnIt) {
    constexpr unsigned many = 70; // more than there are threads for files
    ring r{small(128), make()};
    const temporary_directory directory;
    const leased_file gate{directory / "gate"};
    const std::string path = directory / "gate";
    const int number = ::open((directory / "old").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::write(number, "old", 3), 3);
    ASSERT_EQ(::fsync(number), 0);
    ::posix_fadvise(number, 0, 0,
                    POSIX_FADV_DONTNEED); // evicted if possible, so that a thread reads it
    char text[3] = {};
    for (unsigned i = 0; i < many; ++i) {
        queue(r, prep::openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CLOEXEC, 0), 100 + i);
    }
    queue(r, prep::read(number, text, 3, 0), 1);
    ASSERT_EQ(r.submit(), static_cast<int>(many) + 1);
    std::map<std::uint64_t, int> found;
    const auto wait_for = [&](std::size_t n) {
        while (found.size() < n) {
            const cqe c = next(r);
            found[c.user_data] = c.res;
        }
    };
    queue(r, prep::close(number), 2);
    while (!found.contains(2)) {
        wait_for(found.size() + 1);
    }
    const descriptor other{::open((directory / "new").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_EQ(::write(other, "new", 3), 3);
    if (other != number) {
        char byte = 0;
        queue(r, prep::read(number, &byte, 1, 0), 3);
        queue(r, prep::fsync(number), 4);
        queue(r, prep::close(number), 5);
        while (!found.contains(5)) {
            wait_for(found.size() + 1);
        }
        EXPECT_EQ(found[3], -EBADF);
        EXPECT_EQ(found[5], -EBADF);
    }
    gate.give_back();
    wait_for(many + 2 + (other != number ? 3 : 0));
    EXPECT_EQ(found[1], 3);
    EXPECT_EQ(std::string_view(text, 3), "old");
    for (const auto& [user_data, result] : found) {
        if (user_data >= 100) {
            EXPECT_GE(descriptor{result}, 0);
        }
    }
}

TEST_P(BothBackendsNotice, G4_ADirectDescriptorIsNotInherited) {
    ring r{small(), make()};
    registered_files files{r, 8};
    const temporary_directory directory;
    const std::string path = directory / "file";
    const std::set<int> before = inherited_descriptors();
    int ends[2];
    EXPECT_EQ(run(r, prep::openat_direct(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT, 0600, 0)), 0);
    EXPECT_EQ(run(r, prep::openat_direct(AT_FDCWD, path.c_str(), O_RDONLY, 0, 1)), 0);
    EXPECT_EQ(run(r, prep::socket_direct(AF_UNIX, SOCK_STREAM, 0, 2)), 0);
    EXPECT_EQ(run(r, prep::pipe_direct(ends, 0, 3)), 0);
    const listener listening;
    const descriptor client = listening.connected();
    EXPECT_EQ(run(r, prep::accept_direct(listening.socket, nullptr, nullptr, 0, 5)), 0);
    EXPECT_EQ(inherited_descriptors(), before);
}

// ---- timeouts with a count

TEST_P(BothBackendsNotice, G13_ACountedTimeoutContinuesItsChain) {
    ring r{small(), make()};
    const timespec late{60, 0};
    queue(r, prep::timeout(&late, 1), 1, sqe_flag::io_link);
    queue(r, prep::nop(), 2);
    ASSERT_EQ(r.submit(), 2);
    queue(r, prep::nop(), 9, sqe_flag::cqe_skip_success); // does not count
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 2ms));
    queue(r, prep::nop(), 3);
    queue(r, prep::nop(), 4);
    EXPECT_EQ(results(r, 4), (std::map<std::uint64_t, int>{{1, 0}, {2, 0}, {3, 0}, {4, 0}}));
}

} // namespace
} // namespace uring_test
