// How io_uring and the epoll backend report failures: which of them break a chain, which arguments
// are already refused at submission, and that no invalid address crashes the program.

#include "uring/backends.hpp"

#include <coil/uring/registered_files.hpp>

#include <array>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

namespace uring_test {
namespace {

struct BothBackendsFailure : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsFailure);

/// An address that is never mapped.
template <class T>
T* nowhere() {
    return reinterpret_cast<T*>(std::uintptr_t{0x1000});
}

// ---- addresses

TEST_P(BothBackendsFailure, G6_AVectorThatCannotBeReadIsAnError) {
    ring r{small(), make()};
    const stream_pair s;
    ::msghdr message{};
    message.msg_iov = nowhere<::iovec>();
    message.msg_iovlen = 1;
    EXPECT_EQ(run(r, prep::sendmsg(s.a, &message, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::sendmsg(s.a, &message, MSG_WAITALL)), -EFAULT);
    EXPECT_EQ(run(r, prep::recvmsg(s.a, &message, 0)), -EFAULT);
    EXPECT_EQ(run(r, selecting(prep::recvmsg(s.a, &message, 0), 9)), -EFAULT);
    EXPECT_EQ(run(r, prep::readv(s.a, nowhere<::iovec>(), 1, 0)), -EFAULT);
    const descriptor inet{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const cqe c = complete(r, prep::sendmsg_zc(inet, &message, 0));
    EXPECT_EQ(c.res, -EFAULT);
    EXPECT_TRUE((next(r).flags & cqe_flag::notif) != 0 || (c.flags & cqe_flag::more) == 0);
}

// The sum of the sizes must not wrap around: the kernel would write beyond the buffer.
TEST_P(BothBackendsFailure, G6_AHeaderLargerThanAnyBufferIsAnError) {
    ring r{small(), make()};
    const stream_pair s{SOCK_DGRAM};
    std::array<char, 256> memory{};
    EXPECT_EQ(run(r, prep::provide_buffers(memory.data(), 128, 2, 1, 0)), 0);
    EXPECT_EQ(::send(s.b, "x", 1, 0), 1);
    ::msghdr message{};
    message.msg_controllen = std::numeric_limits<std::size_t>::max() - 15;
    EXPECT_EQ(run(r, prep::recvmsg_multishot(s.a, &message, 0, 1)), -EOVERFLOW);
    message.msg_controllen = 0;
    message.msg_namelen = 0x7fffffff;
    EXPECT_EQ(run(r, prep::recvmsg_multishot(s.a, &message, 0, 1)), -EOVERFLOW);
}

// ---- failures that Linux does not mark

class unmarked_failures {
public:
    [[nodiscard]] std::vector<std::pair<const char*, sqe>> all() {
        return {
            {"mkdirat", prep::mkdirat(AT_FDCWD, there_.c_str(), 0700)},
            {"unlinkat", prep::unlinkat(AT_FDCWD, missing_.c_str(), 0)},
            {"renameat", prep::renameat(AT_FDCWD, missing_.c_str(), AT_FDCWD, there_.c_str(), 0)},
            {"symlinkat", prep::symlinkat("x", AT_FDCWD, there_.c_str())},
            {"linkat", prep::linkat(AT_FDCWD, missing_.c_str(), AT_FDCWD, there_.c_str(), 0)},
            {"statx", prep::statx(AT_FDCWD, missing_.c_str(), 0, STATX_SIZE, &status_)},
            {"getxattr", prep::getxattr(missing_.c_str(), "user.x", value_.data(), 4)},
            {"setxattr", prep::setxattr(missing_.c_str(), "user.x", value_.data(), 4, 0)},
            {"fsync", prep::fsync(pipe_.out)},
            {"sync_file_range", prep::sync_file_range(pipe_.out, 4, 0, 0)},
            {"fallocate", prep::fallocate(pipe_.out, 0, 0, 4)},
            {"ftruncate", prep::ftruncate(pipe_.out, 4)},
            {"fgetxattr", prep::fgetxattr(pipe_.out, "user.x", value_.data(), 4)},
            {"fsetxattr", prep::fsetxattr(pipe_.out, "user.x", value_.data(), 4, 0)},
            {"shutdown", prep::shutdown(socket_, SHUT_WR)},
            {"madvise", prep::madvise(value_.data(), 4, 99)},
        };
    }

private:
    temporary_directory directory_;
    std::string there_{directory_ / "."};
    std::string missing_ = directory_ / "missing";
    pipe_pair pipe_;
    descriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}; // not connected
    struct ::statx status_{};
    std::array<char, 4> value_{};
};

TEST_P(BothBackendsFailure, G13_SomeCallsDoNotBreakTheirChain) {
    ring r{small(), make()};
    unmarked_failures calls;
    for (const auto& [name, call] : calls.all()) {
        SCOPED_TRACE(name);
        if (!r.supports(static_cast<opcode>(call.opcode))) {
            continue;
        }
        queue(r, call, 1, sqe_flag::io_link);
        queue(r, prep::nop(), 2);
        const auto found = results(r, 2);
        EXPECT_LT(found.at(1), 0);
        EXPECT_EQ(found.at(2), 0);
        queue(r, call, 1, sqe_flag::cqe_skip_success);
        queue(r, prep::nop(), 2);
        EXPECT_EQ(next(r).user_data, 2U);
        EXPECT_TRUE(is_quiet(r, 1ms));
    }
}

TEST_P(BothBackendsFailure, G13_AMissingFileBreaksEveryChain) {
    ring r{small(), make()};
    const pipe_pair p;
    for (const auto& [call, error] :
         {std::pair{prep::fsync(-1), -EBADF}, std::pair{prep::fallocate(999'999, 0, 0, 4), -EBADF},
          std::pair{prep::shutdown(-1, SHUT_WR), -EBADF},
          std::pair{prep::shutdown(p.out, SHUT_WR), -ENOTSOCK}}) {
        queue(r, call, 1, sqe_flag::io_link);
        queue(r, prep::nop(), 2);
        const auto found = results(r, 2);
        EXPECT_EQ(found.at(1), error);
        EXPECT_EQ(found.at(2), -ECANCELED);
        EXPECT_EQ(run(r, call, sqe_flag::cqe_skip_success), error);
    }
}

// ---- what is refused at submission: the chain is cancelled before it begins

TEST_P(BothBackendsFailure, G13_InvalidArgumentsCancelAChainBeforeItBegins) {
    ring r{small(), make()};
    std::uint32_t word = 0;
    const pipe_pair p;
    const std::array<std::uint64_t, 3> how{};
    sqe futex = prep::futex_wait(&word, 0);
    futex.fd = 0x200;
    sqe wake = prep::futex_wake(&word, 1);
    wake.fd = 0;
    sqe open = prep::nop();
    open.opcode = static_cast<std::uint8_t>(opcode::openat2);
    open.fd = AT_FDCWD;
    open.addr = reinterpret_cast<std::uintptr_t>("/");
    open.addr2 = reinterpret_cast<std::uintptr_t>(how.data());
    open.len = sizeof how - 1;
    sqe update = prep::nop();
    update.opcode = static_cast<std::uint8_t>(opcode::files_update);
    sqe level = prep::poll_add(p.out, POLLOUT);
    level.len = 8; // IORING_POLL_ADD_LEVEL
    sqe receive = prep::nop();
    receive.opcode = static_cast<std::uint8_t>(opcode::recv_zc);
    receive.fd = p.in;
    const std::vector<std::pair<const char*, std::pair<sqe, int>>> all{
        {"futex_wait", {futex, -EINVAL}},
        {"futex_wake", {wake, -EINVAL}},
        {"openat2", {open, -EINVAL}},
        {"files_update", {update, -EINVAL}},
        {"poll_add", {level, -EINVAL}},
        {"recv_zc", {receive, -EINVAL}},
        {"socket", {prep::socket(AF_UNIX, SOCK_STREAM | 0x10000000, 0), -EINVAL}},
        {"unlinkat", {prep::unlinkat(AT_FDCWD, "", 0), -ENOENT}},
        {"openat", {prep::openat(AT_FDCWD, "", O_RDONLY), -ENOENT}},
        {"fgetxattr", {prep::fgetxattr(p.in, "", nullptr, 0), -ERANGE}},
        {"mkdirat", {prep::mkdirat(AT_FDCWD, nullptr, 0), -EFAULT}},
    };
    for (const auto& [name, entry] : all) {
        SCOPED_TRACE(name);
        if (!r.supports(static_cast<opcode>(entry.first.opcode)) && entry.first.opcode != 58) {
            continue;
        }
        queue(r, prep::nop(), 1, sqe_flag::io_link);
        queue(r, entry.first, 2);
        const auto found = results(r, 2);
        EXPECT_EQ(found.at(1), -ECANCELED);
        EXPECT_EQ(found.at(2), entry.second);
    }
}

TEST_P(BothBackendsFailure, G13_AnAddressThatCannotBeReadEndsASubmission) {
    params p{};
    ring r{16, p, make()};
    ::msghdr message{};
    message.msg_iov = nowhere<::iovec>();
    message.msg_iovlen = 1;
    for (const sqe& entry :
         {prep::unlinkat(AT_FDCWD, nowhere<char>(), 0), prep::readv(0, nowhere<::iovec>(), 1, 0),
          prep::sendmsg(0, &message, 0)}) {
        queue(r, entry, 1);
        queue(r, prep::nop(), 2);
        EXPECT_EQ(r.submit(), 1);
        EXPECT_EQ(next(r).res, -EFAULT);
        EXPECT_EQ(r.submit(), 1);
        EXPECT_EQ(next(r).user_data, 2U);
    }
}

TEST_P(BothBackendsFailure, ALinkTimeoutIgnoresTheFlagForRepetition) {
    ring r{small(), make()};
    const pipe_pair p;
    char byte = 0;
    const timespec soon{0, 1'000'000};
    sqe limit = prep::link_timeout(&soon);
    limit.timeout_flags |= timeout_flag::multishot;
    queue(r, prep::read(p.in, &byte, 1, 0), 1, sqe_flag::io_link);
    queue(r, limit, 2);
    const auto found = results(r, 2);
    EXPECT_EQ(found.at(1), -ECANCELED);
    EXPECT_EQ(found.at(2), -ETIME);
    EXPECT_TRUE(is_quiet(r, 3ms));
}

// ---- the file comes first

TEST_P(BothBackendsFailure, ASocketHasNoPosition) {
    ring r{small(), make()};
    const stream_pair s;
    std::array<char, 4> text{};
    EXPECT_EQ(run(r, prep::write(s.a, "abc", 3, 5)), -ESPIPE);
    EXPECT_EQ(run(r, prep::write(s.a, "abc", 3, 0)), 3);
    EXPECT_EQ(run(r, prep::read(s.b, text.data(), 4, 5)), -ESPIPE);
    EXPECT_EQ(run(r, prep::read(s.b, text.data(), 4, prep::current_position)), 3);
    const pipe_pair p;
    EXPECT_EQ(run(r, prep::write(p.out, "abc", 3, 5)), 3);
    EXPECT_EQ(run(r, prep::read(p.in, text.data(), 4, 5)), 3);
}

TEST_P(BothBackendsFailure, AnEmptyWriteIsAMessage) {
    ring r{small(), make()};
    for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
        const stream_pair s{type};
        const ::iovec none{};
        EXPECT_EQ(run(r, prep::write(s.a, nullptr, 0, 0)), 0);
        EXPECT_EQ(run(r, prep::writev(s.a, &none, 1, prep::current_position)), 0);
        char byte = 0;
        EXPECT_EQ(::recv(s.b, &byte, 1, MSG_DONTWAIT), 0);
        EXPECT_EQ(::recv(s.b, &byte, 1, MSG_DONTWAIT), 0);
    }
}

TEST_P(BothBackendsFailure, AFileThatIsNoSocketIsFoundBeforeABufferOrCommand) {
    ring r{small(), make()};
    const pipe_pair p;
    char byte = 0;
    int one = 1;
    EXPECT_EQ(run(r, selecting(prep::recv(p.in, nullptr, 0, 0), 9)), -ENOTSOCK);
    EXPECT_EQ(run(r, selecting(prep::send(p.out, &byte, 0, 0), 9)), -ENOTSOCK);
    EXPECT_EQ(run(r, selecting(prep::recv(999'999, nullptr, 0, 0), 9)), -EBADF);
    if (r.supports(opcode::futex_wait)) { // commands to sockets are of the same age
        EXPECT_EQ(run(r, prep::setsockopt(p.in, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one)),
                  -EOPNOTSUPP);
        sqe unknown = prep::setsockopt(-1, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
        unknown.cmd_op = 99;
        EXPECT_EQ(run(r, unknown), -EBADF);
    }
    sqe message = prep::msg_ring(-1, 0, 0);
    message.file_index = 1;
    EXPECT_EQ(run(r, message), -EBADF);
    const descriptor path{::open("/", O_PATH | O_CLOEXEC)};
    EXPECT_EQ(run(r, prep::read_multishot(path, 0, 0, 1)), -EBADF);
}

TEST_P(BothBackendsFailure, AMessageWithDataHasACompletion) {
    ring r{small(), make()};
    EXPECT_EQ(run(r, prep::msg_ring(r.native_handle(), 1, 2, msg_ring_flag::cqe_skip)), -EINVAL);
    EXPECT_TRUE(is_quiet(r, 1ms));
}

TEST_P(BothBackendsFailure, G3_ACancelByFileFindsADirectDescriptorByItsFlag) {
    ring r{small(), make()};
    registered_files table{r, 8};
    const pipe_pair p;
    const std::array<int, 1> files{p.in};
    table.update(3, files);
    char byte = 0;
    sqe cancel = prep::cancel(0, cancel_flag::fd);
    cancel.fd = 3;
    queue(r, prep::read(3, &byte, 1, 0), 7, sqe_flag::fixed_file);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(run(r, cancel, sqe_flag::fixed_file), 0);
    EXPECT_EQ(next(r).res, -ECANCELED);
    cancel.fd = 4;
    EXPECT_EQ(run(r, cancel, sqe_flag::fixed_file), -EBADF);
}

// Files without non-blocking transfers answer -EOPNOTSUPP for that reason alone.
TEST_P(BothBackendsFailure, FlagsOfATransferAreLeftToTheFile) {
    ring r{small(), make()};
    const descriptor file{::memfd_create("file", MFD_CLOEXEC)};
    sqe write = prep::write(file, "abc", 3, 0);
    for (const std::uint32_t flags : {0x80U, 0x100U}) { // RWF_DONTCACHE, RWF_NOSIGNAL
        const ::iovec part{const_cast<char*>("abc"), 3};
        const int wanted = outcome(::pwritev2(file, &part, 1, 0, static_cast<int>(flags)));
        write.rw_flags = flags;
        EXPECT_EQ(run(r, write), wanted) << flags;
    }
    write.rw_flags = 1; // RWF_HIPRI
    EXPECT_EQ(run(r, write), -EINVAL);
}

// As for a receive that is not multishot, but the buffer has a header, too.
TEST_P(BothBackendsFailure, TheLengthOfAVectorLimitsTheBufferOfAMultishotMessage) {
    ring r{small(), make()};
    const stream_pair s{SOCK_DGRAM};
    std::array<char, 256> memory{};
    EXPECT_EQ(run(r, prep::provide_buffers(memory.data(), 128, 2, 1, 0)), 0);
    EXPECT_EQ(::send(s.b, "datagram", 8, 0), 8);
    ::iovec part{nullptr, sizeof(recvmsg_out) - 1};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    EXPECT_EQ(run(r, prep::recvmsg_multishot(s.a, &message, 0, 1)), -EFAULT);
    part.iov_len = sizeof(recvmsg_out) + 4;
    const cqe c = complete(r, prep::recvmsg_multishot(s.a, &message, 0, 1));
    EXPECT_EQ(c.res, static_cast<int>(part.iov_len));
    recvmsg_out out{};
    std::memcpy(&out, &memory[std::size_t{128} * (c.flags >> cqe_flag::buffer_shift)], sizeof out);
    EXPECT_EQ(out.flags, std::uint32_t{MSG_TRUNC});
}

// ---- poll_first

TEST_P(BothBackendsFailure, APollFirstReceiveTakesItsBufferWhenThereIsData) {
    ring r{small(), make()};
    const stream_pair s;
    std::array<char, 8> memory{};
    sqe receive = selecting(prep::recv(s.a, nullptr, 0, 0));
    receive.ioprio = recvsend_flag::poll_first;
    queue(r, receive, 7);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 1ms)); // not -ENOBUFS
    EXPECT_EQ(run(r, prep::provide_buffers(memory.data(), 8, 1, 1, 3)), 0);
    EXPECT_EQ(::send(s.b, "data", 4, 0), 4);
    const cqe c = next(r);
    EXPECT_EQ(c.user_data, 7U);
    EXPECT_EQ(c.res, 4);
    EXPECT_EQ(c.flags >> cqe_flag::buffer_shift, 3U);
    EXPECT_EQ(std::string_view(memory.data(), 4), "data");
}

} // namespace
} // namespace uring_test
