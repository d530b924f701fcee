#include "support.hpp"

#include <coil/uring/registered_files.hpp>

#include <array>
#include <numeric>
#include <string_view>
#include <thread>
#include <type_traits>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace uring_test {
namespace {

static_assert(std::is_nothrow_move_constructible_v<registered_files>);
static_assert(!std::is_copy_constructible_v<registered_files>);

class UringRegisteredFiles : public with_io_uring {
protected:
    ring r{16};
    temporary_directory dir;
    std::string path = dir / "file";
    descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};

    void SetUp() override {
        with_io_uring::SetUp();
        if (IsSkipped()) {
            return;
        }
        ASSERT_EQ(::pwrite(file, "content", 7, 0), 7);
    }

    int read_slot(unsigned slot) { return read_slot(r, slot); }
    static int read_slot(ring& on, unsigned slot) {
        std::array<char, 8> buf{};
        const int n =
            run(on, prep::read(static_cast<int>(slot), buf.data(), 7, 0), sqe_flag::fixed_file);
        if (n == 7) {
            EXPECT_STREQ(buf.data(), "content");
        }
        return n;
    }
    int open_slot(std::uint32_t slot) {
        return run(r, prep::openat_direct(AT_FDCWD, path.c_str(), O_RDONLY, 0, slot));
    }
    static int put(registered_files& table, unsigned slot, int fd) {
        return table.update(slot, {&fd, 1});
    }
};

struct tcp_listener {
    tcp_listener() {
        in.sin_family = AF_INET;
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t len = sizeof in;
        EXPECT_EQ(::bind(fd, generic(), len), 0);
        EXPECT_EQ(::listen(fd, 16), 0);
        EXPECT_EQ(::getsockname(fd, generic(), &len), 0);
    }
    ::sockaddr* generic() { return reinterpret_cast<::sockaddr*>(&in); }
    descriptor client() {
        descriptor c{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        EXPECT_EQ(::connect(c, generic(), sizeof in), 0);
        return c;
    }
    descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    ::sockaddr_in in{};
};

TEST_F(UringRegisteredFiles, SlotsReplaceDescriptors) {
    registered_files table{r, 8};
    EXPECT_TRUE(table);
    EXPECT_EQ(table.size(), 8U);
    EXPECT_EQ(read_slot(3), -EBADF);
    ASSERT_EQ(put(table, 3, file), 1);
    file.reset(); // the table holds the file
    EXPECT_EQ(read_slot(3), 7);
    EXPECT_EQ(read_slot(2), -EBADF);
    EXPECT_EQ(read_slot(8), -EBADF);
    EXPECT_EQ(read_slot(0x7fffffff), -EBADF);
    EXPECT_EQ(table.clear(3), 0);
    EXPECT_EQ(read_slot(3), -EBADF);
    EXPECT_EQ(table.clear(3), 0); // already empty
}

TEST_F(UringRegisteredFiles, UpdatesReplaceSkipOrClearSlots) {
    registered_files table{r, 200};
    const pipe_pair p;
    ASSERT_EQ(table.update(0, std::array{int{file}, int{file}, int{file}}), 3);
    ASSERT_EQ(table.update(0, std::array{int{p.in}, files_skip, -1}), 3);
    ASSERT_EQ(::write(p.out, "pipe", 4), 4);
    std::array<char, 8> buf{};
    EXPECT_EQ(run(r, prep::read(0, buf.data(), 8, prep::current_position), sqe_flag::fixed_file),
              4);
    EXPECT_EQ(read_slot(1), 7);
    EXPECT_EQ(read_slot(2), -EBADF);

    std::array<int, 200> all{};
    all.fill(file);
    EXPECT_EQ(table.update(0, all), 200);
    EXPECT_EQ(table.clear(1, 198), 0);
    EXPECT_EQ(read_slot(0), 7);
    EXPECT_EQ(read_slot(1), -EBADF);
    EXPECT_EQ(read_slot(198), -EBADF);
    EXPECT_EQ(read_slot(199), 7);
}

TEST_F(UringRegisteredFiles, AFailedUpdateChangesNoLaterSlot) {
    registered_files table{r, 4};
    ASSERT_EQ(put(table, 0, file), 1);
    EXPECT_EQ(table.update(0, {}), 0);
    EXPECT_EQ(put(table, 4, file), -EINVAL);
    EXPECT_EQ(put(table, ~0U, file), -EINVAL);
    EXPECT_EQ(table.update(3, std::array{int{file}, int{file}}), -EINVAL);
    EXPECT_EQ(table.clear(3, 2), -EINVAL);
    EXPECT_EQ(table.clear(5, 0), -EINVAL);
    EXPECT_EQ(put(table, 1, 1 << 20), -EBADF);
    EXPECT_EQ(put(table, 1, -3), -EBADF);
    EXPECT_EQ(put(table, 1, r.native_handle()), -EBADF);
    EXPECT_EQ(read_slot(0), 7);
    EXPECT_EQ(read_slot(1), -EBADF);
    // The files before the first invalid one are registered.
    EXPECT_EQ(table.update(1, std::array{int{file}, 1 << 20, int{file}}), 1);
    EXPECT_EQ(read_slot(1), 7);
    EXPECT_EQ(read_slot(3), -EBADF);
}

TEST_F(UringRegisteredFiles, FilesAreOpenedIntoSlots) {
    COIL_NEEDS(r, socket);
    EXPECT_EQ(open_slot(0), -ENXIO); // no table yet
    EXPECT_EQ(open_slot(file_index_alloc), -ENFILE);
    EXPECT_EQ(run(r, prep::close_direct(0)), -ENXIO);

    registered_files table{r, 4};
    EXPECT_EQ(open_slot(2), 0);
    EXPECT_EQ(read_slot(2), 7);
    EXPECT_EQ(open_slot(4), -EINVAL);
    EXPECT_EQ(run(r, prep::socket_direct(AF_INET, SOCK_STREAM, 0, 2)), 0); // replaces the file
    EXPECT_EQ(read_slot(2), -ENOTCONN);
    EXPECT_EQ(run(r, prep::close_direct(2)), 0);
    EXPECT_EQ(run(r, prep::close_direct(2)), -EBADF);
    EXPECT_EQ(run(r, prep::close_direct(4)), -EINVAL);
    EXPECT_EQ(read_slot(2), -EBADF);
}

TEST_F(UringRegisteredFiles, CloseOnExecIsRefusedForASlot) {
    COIL_NEEDS(r, socket);
    registered_files table{r, 4};
    const tcp_listener listener;
    EXPECT_EQ(run(r, prep::openat_direct(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0, 0)),
              -EINVAL);
    EXPECT_EQ(run(r, prep::socket_direct(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, 0)), -EINVAL);
    EXPECT_EQ(run(r, prep::accept_direct(listener.fd, nullptr, nullptr, SOCK_CLOEXEC, 0)), -EINVAL);
    COIL_NEEDS(r, pipe);
    std::array<int, 2> ends{};
    EXPECT_EQ(run(r, prep::pipe_direct(ends.data(), O_CLOEXEC, 0)), -EINVAL);
}

TEST_F(UringRegisteredFiles, AFreeSlotIsAllocatedUntilNoneIsLeft) {
    COIL_NEEDS(r, socket); // the kernels that have it have file_index_alloc
    registered_files table{r, 3};
    ASSERT_EQ(put(table, 1, file), 1);
    const int one = open_slot(file_index_alloc);
    const int other = open_slot(file_index_alloc);
    EXPECT_TRUE((one == 0 && other == 2) || (one == 2 && other == 0)) << one << ' ' << other;
    EXPECT_EQ(read_slot(0), 7);
    EXPECT_EQ(read_slot(2), 7);
    EXPECT_EQ(open_slot(file_index_alloc), -ENFILE);
    EXPECT_EQ(run(r, prep::socket_direct(AF_INET, SOCK_STREAM, 0, file_index_alloc)), -ENFILE);
    EXPECT_EQ(table.clear(1), 0);
    EXPECT_EQ(open_slot(file_index_alloc), 1);
    EXPECT_EQ(run(r, prep::close_direct(2)), 0);
    EXPECT_EQ(open_slot(file_index_alloc), 2);
}

TEST_F(UringRegisteredFiles, AllocRangeLimitsWhichSlotsAreAllocated) {
    COIL_NEEDS(r, socket);
    registered_files table{r, 8};
    if (table.alloc_range(5, 2) == -EINVAL) {
        GTEST_SKIP() << "this kernel has no allocation ranges (Linux 6.0)";
    }
    EXPECT_EQ(open_slot(file_index_alloc), 5);
    EXPECT_EQ(open_slot(file_index_alloc), 6);
    EXPECT_EQ(open_slot(file_index_alloc), -ENFILE);
    EXPECT_EQ(open_slot(0), 0); // an explicit number
    EXPECT_EQ(table.alloc_range(0, 2), 0);
    EXPECT_EQ(open_slot(file_index_alloc), 1);
    EXPECT_EQ(open_slot(file_index_alloc), -ENFILE);
    EXPECT_EQ(table.alloc_range(7, 2), -EINVAL);
    EXPECT_EQ(table.alloc_range(~0U, 2), -EOVERFLOW);
    EXPECT_EQ(table.alloc_range(0, 8), 0);
    EXPECT_GE(open_slot(file_index_alloc), 2);
    table.close();
    EXPECT_EQ(table.alloc_range(0, 1), -EBADF);
}

TEST_F(UringRegisteredFiles, SocketsWorkWithoutDescriptors) {
    COIL_NEEDS(r, socket);
    registered_files table{r, 4};
    tcp_listener listener;
    ASSERT_EQ(run(r, prep::socket_direct(AF_INET, SOCK_STREAM, 0, 1)), 0);
    ASSERT_EQ(
        run(r, prep::connect(1, listener.generic(), sizeof listener.in), sqe_flag::fixed_file), 0);
    ASSERT_EQ(run(r, prep::accept_direct(listener.fd, nullptr, nullptr, 0, 3)), 0);
    EXPECT_EQ(run(r, prep::send(1, "abc", 3, 0), sqe_flag::fixed_file), 3);
    std::array<char, 8> buf{};
    EXPECT_EQ(run(r, prep::recv(3, buf.data(), 8, 0), sqe_flag::fixed_file), 3);
    EXPECT_STREQ(buf.data(), "abc");
    EXPECT_EQ(run(r, prep::close_direct(1)), 0);
    EXPECT_EQ(run(r, prep::recv(3, buf.data(), 8, 0), sqe_flag::fixed_file), 0); // end of file
}

TEST_F(UringRegisteredFiles, AnAcceptWithoutAFreeSlotLosesTheConnection) {
    COIL_NEEDS(r, socket);
    registered_files table{r, 1};
    tcp_listener listener;
    const descriptor first = listener.client();
    EXPECT_EQ(run(r, prep::accept_direct(listener.fd, nullptr, nullptr, 0, file_index_alloc)), 0);
    const descriptor second = listener.client();
    EXPECT_EQ(run(r, prep::accept_direct(listener.fd, nullptr, nullptr, 0, file_index_alloc)),
              -ENFILE);
    EXPECT_EQ(outcome(::accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC)), -EAGAIN);
    char byte = 0;
    const int end = run(r, prep::recv(second, &byte, 1, 0));
    EXPECT_TRUE(end == 0 || end == -ECONNRESET) << end;
    EXPECT_EQ(::send(first, "x", 1, MSG_NOSIGNAL), 1); // that connection still exists
    EXPECT_EQ(run(r, prep::recv(0, &byte, 1, 0), sqe_flag::fixed_file), 1);
}

TEST_F(UringRegisteredFiles, MultishotAcceptFillsTheTableAndEnds) {
    COIL_NEEDS(r, socket);
    registered_files table{r, 2};
    tcp_listener listener;
    queue(r, prep::accept_multishot_direct(listener.fd, 0), 1);
    ASSERT_EQ(r.submit(), 1);
    for (int i = 0; i < 2; ++i) {
        const descriptor client = listener.client();
        const cqe c = next(r);
        EXPECT_EQ(c.res, i);
        EXPECT_TRUE(has_more(c));
    }
    const descriptor client = listener.client();
    const cqe full = next(r);
    EXPECT_EQ(full.res, -ENFILE);
    EXPECT_FALSE(has_more(full));
}

TEST_F(UringRegisteredFiles, ADirectDescriptorCanBecomeAnOrdinaryOne) {
    COIL_NEEDS(r, fixed_fd_install);
    registered_files table{r, 4};
    ASSERT_EQ(open_slot(2), 0);
    const descriptor installed{run(r, prep::fixed_fd_install(2))};
    ASSERT_GE(installed, 0);
    EXPECT_EQ(::fcntl(installed, F_GETFD), FD_CLOEXEC);
    const descriptor inherited{run(r, prep::fixed_fd_install(2, fixed_fd_flag::no_cloexec))};
    ASSERT_GE(inherited, 0);
    EXPECT_EQ(::fcntl(inherited, F_GETFD), 0);
    EXPECT_EQ(run(r, prep::close_direct(2)), 0);
    std::array<char, 8> buf{};
    EXPECT_EQ(::pread(installed, buf.data(), 7, 0), 7); // the same open file description
    EXPECT_EQ(run(r, prep::fixed_fd_install(2)), -EBADF);
    EXPECT_EQ(run(r, prep::fixed_fd_install(4)), -EBADF);
}

TEST_F(UringRegisteredFiles, FilesUpdateAllocatesFreeSlots) {
    COIL_NEEDS(r, socket);
    registered_files table{r, 4};
    ASSERT_EQ(put(table, 0, file), 1);
    std::array<int, 2> fds{file, file};
    const int n = run(r, prep::files_update(fds.data(), 2, file_index_alloc));
    EXPECT_EQ(n, 2);
    EXPECT_EQ(fds[0] + fds[1], 3); // the slots: 1 and 2 in some order
    EXPECT_EQ(read_slot(1), 7);
    EXPECT_EQ(read_slot(2), 7);
    fds.fill(file);
    EXPECT_EQ(run(r, prep::files_update(fds.data(), 2, file_index_alloc)), 1);
    EXPECT_EQ(fds[0], 3);
    EXPECT_EQ(fds[1], file); // no slot was left for this one
    EXPECT_EQ(run(r, prep::files_update(&fds[1], 1, file_index_alloc)), -ENFILE);
}

TEST_F(UringRegisteredFiles, PipesAreCreatedInSlots) {
    COIL_NEEDS(r, pipe);
    registered_files table{r, 4};
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(run(r, prep::pipe_direct(ends.data(), 0, 1)), 0);
    EXPECT_EQ(run(r, prep::write(2, "pipe", 4, prep::current_position), sqe_flag::fixed_file), 4);
    std::array<char, 8> buf{};
    EXPECT_EQ(run(r, prep::read(1, buf.data(), 8, prep::current_position), sqe_flag::fixed_file),
              4);
    EXPECT_STREQ(buf.data(), "pipe");
    EXPECT_EQ(run(r, prep::pipe_direct(ends.data(), 0, file_index_alloc)), 0);
    EXPECT_EQ(ends[0] + ends[1], 3); // slots 0 and 3
    EXPECT_EQ(run(r, prep::pipe_direct(ends.data(), 0, file_index_alloc)), -ENFILE);
}

TEST_F(UringRegisteredFiles, G2_AnOperationKeepsTheFileItWasSubmittedWith) {
    registered_files table{r, 1};
    pipe_pair p;
    ASSERT_EQ(put(table, 0, p.in), 1);
    std::array<char, 8> buf{};
    queue(r, prep::read(0, buf.data(), 8, prep::current_position), 1, sqe_flag::fixed_file);
    ASSERT_EQ(r.submit(), 1);
    p.in.reset();
    EXPECT_EQ(table.clear(0), 0);
    ASSERT_EQ(put(table, 0, file), 1);
    ASSERT_EQ(::write(p.out, "pipe", 4), 4);
    EXPECT_EQ(next(r).res, 4);
    EXPECT_STREQ(buf.data(), "pipe");
    EXPECT_EQ(read_slot(0), 7);
}

TEST_F(UringRegisteredFiles, G4_ClosingTheTableClosesItsFiles) {
    pipe_pair p;
    {
        registered_files table{r, 4};
        ASSERT_EQ(put(table, 3, p.out), 1);
        p.out.reset();
    }
    char byte = 0;
    EXPECT_EQ(run(r, prep::read(p.in, &byte, 1, prep::current_position)), 0); // no writer is left
}

TEST_F(UringRegisteredFiles, TheTableCanBeClosedAndCreatedAgain) {
    registered_files table;
    EXPECT_FALSE(table);
    EXPECT_EQ(table.size(), 0U);
    table.close();
    EXPECT_EQ(put(table, 0, file), -EBADF);
    EXPECT_EQ(table.clear(0), -EBADF);
    EXPECT_EQ(table.alloc_range(0, 1), -EBADF);
    for (const unsigned slots : {1U, 7U, 1000U, 2U}) {
        ASSERT_EQ(table.setup(r, slots), 0) << slots;
        EXPECT_EQ(table.size(), slots);
        ASSERT_EQ(put(table, slots - 1, file), 1);
        EXPECT_EQ(read_slot(slots - 1), 7);
        table.close();
        EXPECT_FALSE(table);
        EXPECT_EQ(read_slot(slots - 1), -EBADF);
    }
}

TEST_F(UringRegisteredFiles, TheTableIsMovable) {
    registered_files one{r, 2};
    ASSERT_EQ(put(one, 0, file), 1);
    registered_files other{std::move(one)};
    EXPECT_FALSE(one); // NOLINT(bugprone-use-after-move): the moved-from state is tested
    EXPECT_EQ(other.size(), 2U);
    EXPECT_EQ(one.setup(r, 2), -EBUSY); // the ring's only table still exists
    one = std::move(other);
    EXPECT_EQ(read_slot(0), 7);
    one = registered_files{};
    EXPECT_EQ(read_slot(0), -EBADF);
}

TEST_F(UringRegisteredFiles, SetupReturnsErrorsAndTheConstructorThrowsThem) {
    registered_files table;
    EXPECT_EQ(table.setup(r, 0), -EINVAL);
    EXPECT_EQ(table.setup(r, registered_files::max_slots + 1), -EMFILE);
    ASSERT_EQ(table.setup(r, 1), 0);
    EXPECT_EQ(table.setup(r, 1), -EBUSY);
    const auto refusal = [&](unsigned slots) -> std::string {
        try {
            const registered_files second{r, slots};
            return "it was not refused";
        } catch (const std::system_error& e) {
            return e.what();
        }
    };
    EXPECT_NE(refusal(1).find("only one such table"), std::string::npos);
    EXPECT_NE(refusal(0).find("at least one"), std::string::npos);
    EXPECT_NE(refusal(~0U).find("1048576"), std::string::npos);
    if ((r.setup_flags() & setup::single_issuer) != 0) {
        std::thread other_thread{[&] {
            registered_files mine;
            EXPECT_EQ(mine.setup(r, 1), -EEXIST);
        }};
        other_thread.join();
    }
}

TEST_F(UringRegisteredFiles, G6_TheDescriptorLimitLimitsTheTable) {
    COIL_SKIP_ON_EPOLL("a direct descriptor is an ordinary descriptor");
    EXPECT_EQ(in_child([&]() -> std::string {
                  ::rlimit limit{};
                  ::getrlimit(RLIMIT_NOFILE, &limit);
                  limit.rlim_cur = 64;
                  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
                      return "setrlimit failed";
                  }
                  ring mine{8};
                  registered_files table;
                  if (const int e = table.setup(mine, 65); e != -EMFILE) {
                      return "setup() with 65 slots returned " + std::to_string(e);
                  }
                  try {
                      const registered_files throwing{mine, 65};
                      return "65 slots were not refused";
                  } catch (const std::system_error& e) {
                      if (std::string_view{e.what()}.find("RLIMIT_NOFILE is 64") ==
                          std::string_view::npos) {
                          return e.what();
                      }
                  }
                  if (const int e = table.setup(mine, 64); e != 0) {
                      return "setup() with 64 slots returned " + std::to_string(e);
                  }
                  // openat_direct needs a slot, but no descriptor.
                  while (::open(path.c_str(), O_RDONLY | O_CLOEXEC) >= 0) {
                  }
                  const sqe open = prep::openat_direct(AT_FDCWD, path.c_str(), O_RDONLY, 0, 63);
                  if (const int e = run(mine, open); e != 0) {
                      return "openat_direct returned " + std::to_string(e);
                  }
                  if (const int n = read_slot(mine, 63); n != 7) {
                      return "the read from the slot returned " + std::to_string(n);
                  }
                  return {};
              }),
              "");
}

TEST_F(UringRegisteredFiles, OlderBackendsGetAnExplicitArrayOfEmptySlots) {
    auto filter = std::make_unique<filter_backend>();
    filter_backend& seam = *filter;
    ring old{ring_options{}, std::move(filter)};
    seam.refuse_control = [](register_op op) { return op == register_op::files2 ? -EINVAL : 0; };
    registered_files table{old, 100};
    EXPECT_EQ(read_slot(old, 99), -EBADF);
    ASSERT_EQ(put(table, 99, file), 1);
    EXPECT_EQ(read_slot(old, 99), 7);
    seam.refuse_control = [](register_op op) {
        return op == register_op::file_alloc_range ? -EINVAL : 0;
    };
    EXPECT_EQ(table.alloc_range(0, 1), -EINVAL);
}

TEST_F(UringRegisteredFiles, ClosingRetriesIfASignalInterruptsIt) {
    auto filter = std::make_unique<filter_backend>();
    filter_backend& seam = *filter;
    ring on{ring_options{}, std::move(filter)};
    int attempts = 0;
    registered_files table{on, 1};
    seam.refuse_control = [&](register_op op) {
        return op == register_op::unregister_files && ++attempts < 3 ? -EINTR : 0;
    };
    table.close();
    EXPECT_EQ(attempts, 3);
    EXPECT_EQ(table.setup(on, 1), 0);
}

} // namespace
} // namespace uring_test
