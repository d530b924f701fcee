// Which arguments io_uring and the epoll backend refuse, and which they ignore.

#include "uring/backends.hpp"

#include <coil/uring/buffer_ring.hpp>
#include <coil/uring/registered_files.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace uring_test {
namespace {

struct BothBackendsArguments : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsArguments);

constexpr timespec hour{3600, 0};

/// Sets the upper half of the 32-bit word before `addr3`; the lower half is `addr_len`.
void set_upper_half_of_last_word(sqe& s) {
    const std::uint16_t one = 1;
    std::memcpy(reinterpret_cast<std::byte*>(&s) + offsetof(sqe, splice_fd_in) + 2, &one,
                sizeof one);
}

// ---- timeouts

TEST_P(BothBackendsArguments, NanosecondsOfATimeoutMayExceedASecond) {
    ring r{small(), make()};
    const timespec soon{0, 1'000'000'000};
    const timespec overdue{-1, 2'000'000'000};
    const timespec negative{1, -1};
    const auto before = r.now();
    EXPECT_EQ(run(r, prep::timeout(&soon)), -ETIME);
    EXPECT_GE(r.now() - before, 1s);
    EXPECT_EQ(run(r, prep::timeout(&overdue)), -EINVAL);
    EXPECT_EQ(run(r, prep::timeout(&negative)), -EINVAL);
    queue(r, prep::timeout(&hour), 1);
    ASSERT_EQ(r.submit(), 1);
    const timespec short_one{0, 1'000'000'001};
    EXPECT_EQ(run(r, prep::timeout_update(1, &short_one)), 0);
    EXPECT_EQ(next(r).res, -ETIME);
}

TEST_P(BothBackendsArguments, AnUpdateOfATimeoutKeepsItsClock) {
    ring r{small(), make()};
    for (const std::uint32_t clock : {timeout_flag::realtime, timeout_flag::boottime}) {
        EXPECT_EQ(run(r, prep::timeout_update(9, &hour, clock)), -EINVAL);
    }
    ::timespec now{};
    ASSERT_EQ(::clock_gettime(CLOCK_REALTIME, &now), 0);
    const timespec late{now.tv_sec + 3600, 0};
    queue(r, prep::timeout(&late, 0, timeout_flag::abs | timeout_flag::realtime), 1);
    ASSERT_EQ(r.submit(), 1);
    const timespec past{now.tv_sec - 1, 0}; // far in the future of the monotonic clock
    EXPECT_EQ(run(r, prep::timeout_update(1, &past, timeout_flag::abs)), 0);
    const cqe c = next(r);
    EXPECT_EQ(c.user_data, 1U);
    EXPECT_EQ(c.res, -ETIME);
}

TEST_P(BothBackendsArguments, AnUpdateOfATimeoutEndsItsCount) {
    ring r{small(), make()};
    queue(r, prep::timeout(&hour, 2), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(run(r, prep::timeout_update(1, &hour)), 0);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(run(r, prep::nop()), 0);
    }
    EXPECT_TRUE(is_quiet(r, 5ms));
}

TEST_P(BothBackendsArguments, AnUpdateOfARepeatedTimeoutEndsItsCount) {
    ring r{small(), make()};
    queue(r, prep::timeout_multishot(&hour, 2), 1);
    ASSERT_EQ(r.submit(), 1);
    const timespec tick{0, 1'000'000};
    queue(r, prep::timeout_update(1, &tick), 2);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(next(r).user_data, 2U);
    for (int i = 0; i < 4; ++i) {
        const cqe c = next(r);
        EXPECT_EQ(c.user_data, 1U);
        EXPECT_EQ(c.res, -ETIME);
        EXPECT_NE(c.flags & cqe_flag::more, 0U) << i;
    }
}

TEST_P(BothBackendsArguments, LinkUpdateAloneRemovesATimeout) {
    ring r{small(), make()};
    queue(r, prep::timeout(&hour), 1);
    ASSERT_EQ(r.submit(), 1);
    sqe entry = prep::timeout_update(1, &hour);
    entry.timeout_flags = timeout_flag::link_update;
    const timespec negative{-1, 0};
    sqe wrong = entry;
    wrong.addr2 = reinterpret_cast<std::uintptr_t>(&negative);
    EXPECT_EQ(run(r, wrong), -EINVAL);
    wrong.addr2 = 8;
    EXPECT_EQ(run(r, wrong), -EFAULT);
    queue(r, entry, 2);
    ASSERT_EQ(r.submit(), 1);
    cqe c = next(r);
    EXPECT_EQ(c.user_data, 2U);
    EXPECT_EQ(c.res, 0);
    c = next(r);
    EXPECT_EQ(c.user_data, 1U);
    EXPECT_EQ(c.res, -ECANCELED);
}

// ---- fields without a meaning

TEST_P(BothBackendsArguments, TheHalfWordBehindTheAddressLengthIsZero) {
    ring r{small(), make()};
    const stream_pair s;
    sqe entry = prep::send(s.a, "x", 1, 0);
    set_upper_half_of_last_word(entry);
    EXPECT_EQ(run(r, entry), -EINVAL);
    entry.opcode = static_cast<std::uint8_t>(opcode::send_zc);
    EXPECT_EQ(run(r, entry), -EINVAL);
}

TEST_P(BothBackendsArguments, UnknownFlagsOfASocketCommandAreInvalid) {
    ring r{small(), make()};
    const stream_pair s;
    int value = 0;
    const sqe good = prep::getsockopt(s.a, SOL_SOCKET, SO_TYPE, &value, sizeof value);
    EXPECT_EQ(run(r, good), static_cast<int>(sizeof value));
    sqe entry = good;
    entry.off |= std::uint64_t{1} << 32;
    EXPECT_EQ(run(r, entry), -EINVAL);
    entry = good;
    entry.uring_cmd_flags = 4;
    EXPECT_EQ(run(r, entry), -EINVAL);
    entry.uring_cmd_flags = 2; // several completions, which requires provided buffers
    EXPECT_EQ(run(r, entry), -EINVAL);
    entry = good;
    entry.buf_index = 7;
    EXPECT_EQ(run(r, entry), static_cast<int>(sizeof value));
    EXPECT_EQ(run(r, good, sqe_flag::buffer_select), -EINVAL);
}

TEST_P(BothBackendsArguments, ProvidedBuffersLieWithinTheirRanges) {
    ring r{small(), make()};
    std::array<char, 64> memory{};
    const auto provide = [&](std::uint64_t first, int count) {
        sqe entry = prep::provide_buffers(memory.data(), 8, count, 3, 0);
        entry.off = first;
        return entry;
    };
    EXPECT_EQ(run(r, provide(65536, 1)), -E2BIG);
    EXPECT_EQ(run(r, provide(std::uint64_t{1} << 40, 1)), -E2BIG);
    EXPECT_EQ(run(r, provide(65535, 2)), -EINVAL);
    sqe entry = provide(0, 2);
    entry.addr = ~std::uint64_t{0} - 8;
    EXPECT_EQ(run(r, entry), -EOVERFLOW);
    entry.addr = std::uint64_t{1} << 63; // not a user-space address
    EXPECT_EQ(run(r, entry), -EFAULT);
    EXPECT_EQ(run(r, provide(65535, 1)), 0);
}

TEST_P(BothBackendsArguments, ReservedFieldsOfRegistrationsAreZero) {
    ring r{small(), make()};
    std::array<char, 64> memory{};
    buffer_ring buffers{r, 1, 16};
    buffers.add(memory.data(), 8, 0);
    buffers.publish();
    buf_status status{};
    status.buf_group = 1;
    EXPECT_EQ(r.get_backend().do_register(register_op::pbuf_status, &status, 1), 0);
    status.resv[7] = 1;
    EXPECT_EQ(r.get_backend().do_register(register_op::pbuf_status, &status, 1), -EINVAL);
    buf_reg reg{};
    reg.bgid = 1;
    reg.resv[2] = 1;
    EXPECT_EQ(r.get_backend().do_register(register_op::unregister_pbuf_ring, &reg, 1), -EINVAL);
    reg.resv[2] = 0;
    reg.flags = pbuf_ring_flag::inc;
    EXPECT_EQ(r.get_backend().do_register(register_op::unregister_pbuf_ring, &reg, 1), -EINVAL);
    sync_cancel_reg cancel{};
    cancel.addr = 9;
    cancel.timeout = {-1, -1};
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &cancel, 1), -ENOENT);
    cancel.pad[6] = 1;
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &cancel, 1), -EINVAL);
    cancel.pad[6] = 0;
    cancel.pad2[2] = 1;
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &cancel, 1), -EINVAL);
}

TEST_P(BothBackendsArguments, ASynchronousCancelFindsADirectDescriptor) {
    ring r{small(), make()};
    registered_files table{r, 8};
    const pipe_pair p;
    const pipe_pair other;
    const std::array<int, 2> files{p.in, other.in};
    table.update(0, files);
    char byte = 0;
    queue(r, prep::read(0, &byte, 1, prep::current_position), 1, sqe_flag::fixed_file);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 1ms));
    sync_cancel_reg cancel{};
    cancel.flags = cancel_flag::fd | cancel_flag::fd_fixed;
    cancel.timeout = {-1, -1};
    cancel.fd = 7; // an empty slot
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &cancel, 1), -EBADF);
    cancel.fd = 8; // beyond the table
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &cancel, 1), -EBADF);
    cancel.fd = 1;
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &cancel, 1), -ENOENT);
    cancel.fd = 0;
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &cancel, 1), 0);
    EXPECT_EQ(next(r).res, -ECANCELED);
}

TEST_P(BothBackendsArguments, ASendFromAMissingGroupFails) {
    ring r{small(), make()};
    const stream_pair s;
    char text[4] = {};
    sqe entry = prep::send(s.a, nullptr, 4, 0);
    entry.buf_group = 9;
    EXPECT_EQ(run(r, entry, sqe_flag::buffer_select), -ENOENT);
    entry = prep::recv(s.a, nullptr, 4, 0);
    entry.buf_group = 9;
    EXPECT_EQ(run(r, entry, sqe_flag::buffer_select), -ENOBUFS);
    ::iovec part{text, 4};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    entry = prep::sendmsg(s.a, &message, 0);
    EXPECT_EQ(run(r, entry, sqe_flag::buffer_select), -EOPNOTSUPP);
}

// ---- sqe_flag::fixed_file where there is no file

TEST_P(BothBackendsArguments, FixedFileIsRefusedOrIgnoredWhereThereIsNoFile) {
    ring r{small(), make()};
    registered_files table{r, 8};
    const temporary_directory directory;
    const std::string path = directory / "file";
    const std::string other = directory / "other";
    alignas(4096) static std::array<char, 4096> memory{};
    struct ::statx status{};
    int ends[2];
    int slot = -1;
    const timespec now{0, 0};
    std::uint32_t word = 0;
    const descriptor set{::epoll_create1(EPOLL_CLOEXEC)};
    const pipe_pair p;
    ::epoll_event event{};
    const std::vector<std::tuple<std::string_view, sqe, int>> all{
        {"nop", prep::nop(), 0},
        {"timeout", prep::timeout(&now), -ETIME},
        {"timeout_remove", prep::timeout_remove(99), -EINVAL},
        {"async_cancel", prep::cancel(99), -ENOENT},
        {"poll_remove", prep::poll_remove(99), -ENOENT},
        {"files_update", prep::files_update(&slot, 1, 0), -EINVAL},
        {"provide_buffers", prep::provide_buffers(memory.data(), 8, 1, 3, 0), 0},
        {"remove_buffers", prep::remove_buffers(1, 3), 1},
        {"madvise", prep::madvise(memory.data(), 4096, MADV_NORMAL), 0},
        {"openat", prep::openat(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT, 0600), -EBADF},
        {"statx", prep::statx(AT_FDCWD, "/", 0, STATX_MODE, &status), -EBADF},
        {"getxattr", prep::getxattr("/", "user.x", memory.data(), 8), -EBADF},
        {"setxattr", prep::setxattr("/", "user.x", memory.data(), 8, 0), -EBADF},
        {"mkdirat", prep::mkdirat(AT_FDCWD, path.c_str(), 0700), -EBADF},
        {"unlinkat", prep::unlinkat(AT_FDCWD, path.c_str(), 0), -EBADF},
        {"renameat", prep::renameat(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), 0), -EBADF},
        {"symlinkat", prep::symlinkat("x", AT_FDCWD, path.c_str()), -EBADF},
        {"linkat", prep::linkat(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), 0), -EBADF},
        {"close", prep::close(1000), -EBADF},
        {"socket", prep::socket_direct(AF_UNIX, SOCK_STREAM, 0, 5), 0},
        {"pipe", prep::pipe_direct(ends, 0, 1), 0},
        {"futex_wake", prep::futex_wake(&word, 1), 0},
        {"epoll_ctl", prep::epoll_ctl(set, EPOLL_CTL_ADD, p.in, &event), 0},
    };
    for (const auto& [name, entry, expected] : all) {
        EXPECT_EQ(run(r, entry, sqe_flag::fixed_file), expected) << name;
    }
}

} // namespace
} // namespace uring_test
