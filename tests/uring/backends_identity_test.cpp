// Which requests belong to a descriptor, and reads of files that are partly in memory, on io_uring
// and on the epoll backend.

#include "support/seccomp.hpp"
#include "uring/backends.hpp"

#include <coil/uring/buffer_ring.hpp>

#include <string>

#include <sys/socket.h>
#include <sys/syscall.h>

namespace uring_test {
namespace {

struct BothBackendsIdentity : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsIdentity);

TEST_P(BothBackendsIdentity, G3_CancelByDescriptorSparesRequestsOfAnOlderFile) {
    for (const bool seen : {false, true}) {
        ring r{small(), make()};
        stream_pair first;
        stream_pair second;
        const int number = first.a;
        char byte = 0;
        queue(r, prep::recv(number, &byte, 1, 0), 1);
        ASSERT_EQ(r.submit(), 1);
        EXPECT_TRUE(is_quiet(r, 1ms));
        ASSERT_EQ(::dup3(second.a, number, O_CLOEXEC), number);
        if (seen) { // time to notice that another file has the number
            EXPECT_TRUE(is_quiet(r, 20ms));
        }
        EXPECT_EQ(run(r, prep::cancel_fd(number, cancel_flag::all)), 0);
        EXPECT_EQ(run(r, prep::cancel_fd(number)), -ENOENT);
        EXPECT_TRUE(is_quiet(r, 1ms));
        queue(r, prep::cancel(1), 2);
        EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, 0}}));
    }
}

TEST_P(BothBackendsIdentity, CancelByDescriptorSparesAnOlderFileWhoseNumberARegularFileHas) {
    ring r{small(), make()};
    const temporary_directory directory;
    const descriptor file{::open((directory / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    stream_pair s;
    const int number = s.a;
    char byte = 0;
    queue(r, prep::recv(number, &byte, 1, 0), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 1ms));
    ASSERT_EQ(::dup3(file, number, O_CLOEXEC), number);
    EXPECT_EQ(run(r, prep::cancel_fd(number)), -ENOENT);
    queue(r, prep::cancel(1), 2);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, 0}}));
}

TEST_P(BothBackendsIdentity, LookingUpAFileLeavesTheRequestsOfAnEarlierOneAlone) {
    ring r{small(), make()};
    const temporary_directory directory;
    const descriptor file{::open((directory / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    const stream_pair s;
    const int number = s.a;
    const descriptor duplicate{::fcntl(number, F_DUPFD_CLOEXEC, 0)};
    char byte = 0;
    queue(r, prep::recv(number, &byte, 1, 0), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 1ms));
    ASSERT_EQ(::dup3(file, number, O_CLOEXEC), number);
    sqe looks_up = prep::nop();
    looks_up.nop_flags = nop_flag::file;
    looks_up.fd = number;
    EXPECT_EQ(run(r, looks_up), 0);
    ASSERT_EQ(::dup3(duplicate, number, O_CLOEXEC), number);
    ASSERT_EQ(::send(s.b, "x", 1, 0), 1);
    EXPECT_EQ(results(r, 1), (std::map<std::uint64_t, int>{{1, 1}}));
    EXPECT_EQ(byte, 'x');
}

TEST_P(BothBackendsIdentity, ADuplicateOfASocketIsTheSameFileWithoutKcmp) {
    const std::string complaint = in_child([this]() -> std::string {
        if (!coil_test::forbid(SYS_kcmp, EPERM)) {
            return "no filter can be installed";
        }
        ring r{small(), make()};
        const stream_pair s;
        const descriptor duplicate{::fcntl(s.a, F_DUPFD_CLOEXEC, 0)};
        char byte = 0;
        sqe* entry = r.acquire();
        *entry = prep::recv(s.a, &byte, 1, 0);
        entry->user_data = 1;
        r.commit(entry);
        if (r.submit() != 1) {
            return "not submitted";
        }
        if (run(r, prep::cancel_fd(s.b)) != -ENOENT) {
            return "the peer counts as the same file";
        }
        entry = r.acquire();
        *entry = prep::cancel_fd(duplicate);
        entry->user_data = 2;
        r.commit(entry);
        const auto found = results(r, 2);
        return found == std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, 0}}
                   ? ""
                   : "cancelled: " + std::to_string(found.at(2));
    });
    EXPECT_EQ(complaint, "");
}

TEST_P(BothBackendsIdentity, AFileIsReadWholeIntoAProvidedBuffer) {
    constexpr unsigned size = 256 << 10;
    ring r{small(), make()};
    const temporary_directory directory;
    const std::string text(size, 'x');
    const descriptor file{::open((directory / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_EQ(::write(file, text.data(), size), static_cast<ssize_t>(size));
    ASSERT_EQ(::fsync(file), 0);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM); // no read-ahead
    char byte = 0;
    ASSERT_EQ(::pread(file, &byte, 1, 0), 1);
    std::string again(std::size_t{size} * 2, '\1');
    buffer_ring buffers{r, 1, 2};
    buffers.add(again.data(), size, 0);
    buffers.add(again.data() + size, size, 1);
    buffers.publish();
    sqe entry = prep::read(file, nullptr, size, 0);
    entry.buf_group = 1;
    cqe c = complete(r, entry, sqe_flag::buffer_select);
    EXPECT_EQ(c.res, static_cast<int>(size));
    ASSERT_TRUE(has_buffer(c));
    EXPECT_EQ(buffer_id(c), 0U);
    EXPECT_TRUE(again.compare(0, size, text) == 0);
    c = complete(r, entry, sqe_flag::buffer_select);
    EXPECT_EQ(c.res, static_cast<int>(size));
    EXPECT_EQ(buffer_id(c), 1U);
    EXPECT_EQ(run(r, entry, sqe_flag::buffer_select), -ENOBUFS);
}

TEST_P(BothBackendsIdentity, AFailedReadOfAFileUsesUpItsBuffer) {
    ring r{small(), make()};
    const temporary_directory directory;
    const descriptor file{::open((directory / "f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    const descriptor readable{::open((directory / "f").c_str(), O_RDONLY | O_CLOEXEC)};
    std::string memory(16, '.');
    buffer_ring buffers{r, 1, 2};
    buffers.add(memory.data(), 8, 0);
    buffers.add(memory.data() + 8, 8, 1);
    buffers.publish();
    sqe entry = prep::read(file, nullptr, 8, 0);
    entry.buf_group = 1;
    cqe c = complete(r, entry, sqe_flag::buffer_select);
    EXPECT_EQ(c.res, -EBADF);
    EXPECT_TRUE(has_buffer(c));
    EXPECT_EQ(buffer_id(c), 0U);
    entry.fd = readable;
    entry.rw_flags = 1U << 20;
    c = complete(r, entry, sqe_flag::buffer_select);
    EXPECT_EQ(c.res, -EOPNOTSUPP);
    EXPECT_TRUE(has_buffer(c));
    EXPECT_EQ(buffer_id(c), 1U);
    EXPECT_EQ(run(r, entry, sqe_flag::buffer_select), -ENOBUFS);
}

} // namespace
} // namespace uring_test
