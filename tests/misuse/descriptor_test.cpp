// Descriptors with two owners, errno after an await, buffers that end too early, contexts that were
// destroyed.

#include "support/printed.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace coil;
using namespace coil_test;
using namespace std::chrono_literals;

namespace {

int a_descriptor() { return ::open("/dev/null", O_RDWR | O_CLOEXEC); }

// mistake 20: two objects own one descriptor
// shows: `descriptor 7 has two owners: net::socket takes it while fs::file owns it`
TEST(DescriptorOwner, TwoOwnersOfOneNumber) {
    expect_printed(
        printed_by([] {
            const fs::file first(a_descriptor());
            net::socket second(first.native_handle());
            static_cast<void>(second.release());
        }),
        "coil: descriptor [0-9]+ has two owners: net::socket takes it while fs::file owns it\\. "
        "Each "
        "will close it\\. Call release\\(\\) of the first owner\\. If the descriptor of the first "
        "was closed by its number, this is another file with that number\\.\n");
}

// mistake 20: the descriptor of an object is closed by its number, which another file then gets
// shows: `descriptor 7 has two owners`
TEST(DescriptorOwner, AClosedNumberThatANewFileGot) {
    expect_printed(printed_by([] {
                       pipe_end stale(a_descriptor());
                       ::close(stale.native_handle());
                       const io::owned_descriptor reused(a_descriptor());
                       EXPECT_EQ(reused.native_handle(), stale.native_handle());
                       static_cast<void>(stale.release());
                   }),
                   "coil: descriptor [0-9]+ has two owners: io::owned_descriptor takes it while "
                   "pipe_end owns it\\. .*\n");
}

// mistake 20: the descriptor of an object is closed by its number
// shows: `the destructor of net::socket closes descriptor 7, which was closed before by its number`
TEST(DescriptorOwner, ClosedByItsNumber) {
    expect_printed(printed_by([] {
                       const net::socket s = net::socket::create_tcp();
                       ::close(s.native_handle());
                   }),
                   "coil: the destructor of net::socket closes descriptor [0-9]+, which was closed "
                   "before by its number\\. Call close\\(\\) of its owner, or release\\(\\) "
                   "first\\.\n");
}

// mistake 20: `io::close(s.native_handle())`
// shows: `io::close(7) closes a descriptor of net::socket`
TEST(DescriptorOwner, IoCloseOfAnOwnedNumber) {
    expect_printed(printed_by([] {
                       run([]() -> task<> {
                           net::socket s = net::socket::create_tcp();
                           EXPECT_EQ(co_await io::close(s.native_handle()), 0);
                           static_cast<void>(s.release());
                       }());
                   }),
                   "coil: io::close\\([0-9]+\\) closes a descriptor of net::socket, whose "
                   "destructor will close its number again\\. Call close\\(\\) of the owner, or "
                   "release\\(\\) first\\.\n");
}

TEST(DescriptorOwner, NotIfOwnershipIsPassedOn) {
    EXPECT_EQ(printed_by([] {
                  run([]() -> task<> {
                      for (int i = 0; i < 3; ++i) {
                          auto [a, b] = net::socket::pair();
                          net::socket moved = std::move(a);
                          moved = net::socket::create_tcp();
                          const io::owned_descriptor again(b.release());
                          EXPECT_EQ(co_await moved.close(), 0);
                          fs::file f(a_descriptor());
                          const int number = f.release();
                          EXPECT_EQ(co_await io::close(number), 0);
                          pipe_end reused(a_descriptor());
                          EXPECT_EQ(co_await reused.close(), 0);
                          ::close(net::socket::create_tcp().release());
                      }
                      // a number is reused as soon as the kernel has closed it
                      net::acceptor ac("127.0.0.1:0");
                      for (int i = 0; i < 100; ++i) {
                          net::socket client = net::socket::create_tcp();
                          EXPECT_EQ(co_await client.connect(ac.local_address()), 0);
                          net::socket server = co_await ac.accept();
                          scope s;
                          s.spawn(client.close());
                          s.spawn(server.close());
                          s.spawn([]() -> task<> {
                              const auto both = net::socket::pair();
                              co_return;
                          }());
                          co_await s.join();
                      }
                  }());
              }),
              "");
}

// mistake 19: `perror()` after an await
// shows: `Unknown error 9999`
TEST(Errno, IsPoisonedByAnAwait) {
    run([]() -> task<> {
        errno = 0;
        EXPECT_EQ(co_await io::close(-1), -EBADF);
        if (checks) {
            EXPECT_STREQ(std::strerror(errno), "Unknown error 9999");
        }
        errno = EINTR;
        co_await yield();
        if (checks) {
            EXPECT_EQ(errno, 9999);
        }
        EXPECT_EQ(::close(-1), -1);
        EXPECT_EQ(errno, EBADF);
    }());
}

#if COIL_CHECKS_BUFFERS
// mistake 11: a buffer is freed before the await, with AddressSanitizer
// shows: `a buffer of read, 64 bytes at ..., must not be accessed`, and where it was freed
TEST(Buffer, FreedBeforeTheSubmission) {
    EXPECT_DEATH(run([]() -> task<> {
                     auto memory = std::make_unique<char[]>(64);
                     auto op = io::read(0, {memory.get(), 64});
                     memory.reset();
                     co_await std::move(op);
                 }()),
                 "coil: a buffer of read, 64 bytes at 0x[0-9a-f]+, must not be accessed: it was "
                 "freed, or is larger than the object\\. It must exist until the await has "
                 "returned\\. AddressSanitizer says about its byte 0:");
}

TEST(Buffer, LargerThanTheObject) {
    EXPECT_DEATH(run([]() -> task<> {
                     auto memory = std::make_unique<char[]>(64);
                     co_await io::write(2, {memory.get(), 65});
                 }()),
                 "coil: a buffer of write, 65 bytes at 0x[0-9a-f]+, must not be accessed: .* about "
                 "its byte 64:");
}

// mistake 11: a buffer is freed during the operation, with AddressSanitizer
// shows: `a buffer of recv, 64 bytes at ..., was freed while the operation was in flight`
TEST(Buffer, FreedWhileInFlight) {
    EXPECT_DEATH(
        run([]() -> task<> {
            auto [a, b] = net::socket::pair();
            auto memory = std::make_unique<char[]>(64);
            co_spawn([](net::socket& from, mutable_buffer into) -> task<> {
                co_await from.recv(into);
            }(a, {memory.get(), 64}));
            co_await yield();
            co_await yield();
            memory.reset();
            static_cast<void>(co_await b.send("x"));
            co_await sleep_for(1ms);
        }()),
        "coil: a buffer of recv, 64 bytes at 0x[0-9a-f]+, was freed while the operation was in "
        "flight\\.");
}

task<> reads_a_vector(net::socket& from, mutable_buffer into) {
    const ::iovec part{into.data(), into.size()};
    co_await io::readv(from.native_handle(), {&part, 1});
}
task<> reads_some(net::socket& from, mutable_buffer into) {
    const mutable_buffer parts[] = {into};
    co_await from.readv_some(parts);
}
task<> receives_with_the_sender(net::socket& from, mutable_buffer into) {
    co_await from.recv_from(into);
}

/// Frees the buffer of a task that waits for it.
template <class Receive>
void free_in_flight(Receive receive) {
    run([](Receive f) -> task<> {
        auto [a, b] = net::socket::pair();
        auto memory = std::make_unique<char[]>(64);
        co_spawn(f(a, {memory.get(), 64}));
        co_await sleep_for(1ms);
        memory.reset();
        static_cast<void>(co_await b.send("x"));
        co_await sleep_for(10ms);
    }(receive));
}

// mistake 11: a buffer of a vectored operation is freed, with AddressSanitizer
// shows: `a buffer of readv, 64 bytes at ..., was freed while the operation was in flight`
TEST(Buffer, OfAVectorFreedWhileInFlight) {
    constexpr const char* sentence = ", 64 bytes at 0x[0-9a-f]+, was freed while the operation was "
                                     "in flight";
    EXPECT_DEATH(free_in_flight(reads_a_vector), std::string("a buffer of readv") + sentence);
    EXPECT_DEATH(free_in_flight(reads_some), std::string("a buffer of recvmsg") + sentence);
    EXPECT_DEATH(free_in_flight(receives_with_the_sender),
                 std::string("a buffer of recvmsg") + sentence);
}

TEST(Buffer, FreedBeforeTheSubmissionOfALimitedOperation) {
    EXPECT_DEATH(run([]() -> task<> {
                     auto memory = std::make_unique<char[]>(64);
                     auto op = timeout(io::read(0, {memory.get(), 64}), 1h);
                     memory.reset();
                     co_await std::move(op);
                 }()),
                 "coil: a buffer of read, 64 bytes at 0x[0-9a-f]+, must not be accessed: it was "
                 "freed");
}

TEST(Buffer, FreedWhileALimitedOperationIsInFlight) {
    EXPECT_DEATH(
        run([]() -> task<> {
            auto [a, b] = net::socket::pair();
            auto memory = std::make_unique<char[]>(64);
            auto pending = eager(timeout(a.recv({memory.get(), 64}), 1h));
            memory.reset();
            static_cast<void>(co_await b.send("x"));
            co_await pending;
        }()),
        "coil: a buffer of recv, 64 bytes at 0x[0-9a-f]+, was freed while the operation was in "
        "flight\\.");
}

// mistake 11: a buffer of an operation in a scope is freed, with AddressSanitizer
// shows: `a buffer of recv, 64 bytes at ..., was freed while the operation was in flight`
TEST(Buffer, FreedWhileInFlightInAScope) {
    EXPECT_DEATH(
        run([]() -> task<> {
            auto [a, b] = net::socket::pair();
            auto memory = std::make_unique<char[]>(64);
            scope s;
            s.spawn(a.recv({memory.get(), 64}));
            co_await yield();
            co_await yield();
            memory.reset();
            static_cast<void>(co_await b.send("x"));
            co_await s.join();
        }()),
        "coil: a buffer of recv, 64 bytes at 0x[0-9a-f]+, was freed while the operation was in "
        "flight\\.");
}
#endif

#if COIL_ASSERTIONS && !COIL_SANITIZED
// mistake 14: a task is spawned on a context that was destroyed (debug builds)
// shows: `an io_context is used after it was destroyed`
TEST(DestroyedContext, IsSpawnedInto) {
    alignas(io_context) static unsigned char memory[sizeof(io_context)];
    EXPECT_DEATH(
        {
            auto* const ctx = ::new (static_cast<void*>(memory)) io_context;
            ctx->~io_context();
            ctx->co_spawn([]() -> task<> { co_return; }());
        },
        "coil: an io_context is used after it was destroyed: a task or function is sent to it, or "
        "what a task of it waits for has ended\\. It must outlive all of these\\.");
}
#endif

} // namespace
