// A request whose arguments the epoll backend cannot copy for lack of memory fails and does not
// run. This program replaces the operator new that allocates the copies.

#include "uring/backends.hpp"

#include <coil/uring/detail/tsan.hpp>
#include <coil/uring/registered_files.hpp>

#include <cstdlib>
#include <new>

#ifdef COIL_TSAN

TEST(CopiedArguments, RunsOnlyWithoutThreadSanitizer) {
    GTEST_SKIP() << "ThreadSanitizer has its own operator new";
}

#else

namespace {

bool out_of_memory = false;

} // namespace

// NOLINTNEXTLINE(misc-definitions-in-headers)
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    if (out_of_memory) {
        return nullptr;
    }
    try {
        return ::operator new[](size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

namespace uring_test {
namespace {

class CopiedArguments : public ::testing::Test {
protected:
    ring r{16, params{}, make_epoll_backend()};
    void submit_without_memory() {
        out_of_memory = true;
        r.submit();
        out_of_memory = false;
    }
};

TEST_F(CopiedArguments, G6_ADeferredRequestWithoutMemoryDoesNotRun) {
    const pipe_pair p;
    const stream_pair s;
    char byte = 0;
    char text[] = "text";
    ::iovec part{text, 4};
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
    queue(r, prep::writev(s.a, &part, 1, prep::current_position), 2, sqe_flag::io_drain);
    submit_without_memory();
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, 1}, {2, -ENOMEM}}));
    EXPECT_EQ(outcome(::recv(s.b, text, 4, MSG_DONTWAIT)), -EAGAIN);
}

TEST_F(CopiedArguments, G6_AWaitingRequestWithoutMemoryDoesNotRun) {
    const stream_pair s;
    char byte = 0;
    ::iovec part{&byte, 1};
    queue(r, prep::readv(s.a, &part, 1, prep::current_position), 1);
    queue(r, prep::nop(), 2);
    submit_without_memory();
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, -ENOMEM}, {2, 0}}));
    ASSERT_EQ(::send(s.b, "x", 1, 0), 1);
    EXPECT_EQ(run(r, prep::read(s.a, &byte, 1, prep::current_position)), 1); // not taken
    EXPECT_EQ(byte, 'x');
}

TEST_F(CopiedArguments, G6_AnOpenWithoutMemoryDoesNotChangeItsArguments) {
    const temporary_directory dir;
    const std::string path = dir / "made";
    const int made = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(made, 0);
    ::close(made);
    registered_files table(r, 4);
    struct {
        std::uint64_t flags = O_RDONLY;
        std::uint64_t mode = 0;
        std::uint64_t resolve = 0;
    } how;
    sqe open = prep::nop();
    open.opcode = static_cast<std::uint8_t>(opcode::openat2);
    open.fd = AT_FDCWD;
    open.addr = reinterpret_cast<std::uintptr_t>(path.c_str());
    open.addr2 = reinterpret_cast<std::uintptr_t>(&how);
    open.len = sizeof how;
    open.file_index = 1;
    queue(r, open, 1);
    submit_without_memory();
    EXPECT_EQ(results(r, 1), (std::map<std::uint64_t, int>{{1, -ENOMEM}}));
    EXPECT_EQ(how.flags, std::uint64_t{O_RDONLY});
    char byte = 0;
    EXPECT_EQ(run(r, prep::read(0, &byte, 1, 0), sqe_flag::fixed_file), -EBADF); // slot 0 is empty
}

} // namespace
} // namespace uring_test

#endif
