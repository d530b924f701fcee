// Objects that two coroutines or two contexts use simultaneously.

#include "support/printed.hpp"
#include "support/run.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;
using namespace coil_test;
using namespace std::chrono_literals;

namespace {

#if COIL_ASSERTIONS

template <class Reader>
task<> reads_a_line(Reader& from) {
    static_cast<void>(co_await from.read_until('\n'));
}

// mistake 13: two coroutines, or two threads, call one buffered_reader at a time (debug builds)
TEST(OwnerDeathTest, TwoCallsOfABufferedReader) {
    auto main = [](bool exact) -> task<> {
        auto [near, far] = net::socket::pair();
        buffered_reader from(near);
        auto first = spawn(reads_a_line(from));
        co_await yield();
        char c = 0;
        if (exact) {
            co_await from.read_exact({&c, 1});
        } else {
            co_await reads_a_line(from);
        }
        co_await first;
    };
    EXPECT_DEATH(run(main(true)), "coil: two calls of one buffered_reader at a time");
    EXPECT_DEATH(run(main(false)), "coil: two calls of one buffered_reader at a time");
}

void read_a_line_on_two_contexts() {
    auto [near, far] = net::socket::pair();
    buffered_reader from(near);
    io_context one;
    io_context two;
    one.co_spawn(reads_a_line(from));
    one.start();
    std::this_thread::sleep_for(50ms);
    two.co_spawn(reads_a_line(from));
    two.run();
}

TEST(OwnerDeathTest, ABufferedReaderOnTwoContexts) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(read_a_line_on_two_contexts(), "coil: two calls of one buffered_reader at a time");
}

// mistake 13: two coroutines, or two threads, call one buffered_writer at a time (debug builds)
TEST(OwnerDeathTest, TwoCallsOfABufferedWriter) {
    auto main = [](bool writes) -> task<> {
        auto [near, far] = net::socket::pair();
        near.set_send_buffer_size(4096);
        buffered_writer to(near, 1 << 20);
        co_await to.write(std::string(1 << 20, 'x'));
        auto first = spawn([](buffered_writer<net::socket&>& w) -> task<io_result> {
            co_return co_await w.flush();
        }(to));
        co_await yield();
        if (writes) {
            co_await to.write("x");
        } else {
            co_await to.flush();
        }
        co_await first;
    };
    EXPECT_DEATH(run(main(true)), "coil: two calls of one buffered_writer at a time");
    EXPECT_DEATH(run(main(false)), "coil: two calls of one buffered_writer at a time");
}

#endif

TEST(Owner, CallsOneAfterTheOtherOnTwoContexts) {
    auto [near, far] = net::socket::pair();
    buffered_reader from(near);
    buffered_writer to(far);
    io_context one;
    io_context two;
    for (io_context* ctx : {&one, &two, &one}) {
        ctx->co_spawn([&]() -> task<> {
            EXPECT_EQ(co_await to.write("a line\n"), 7);
            EXPECT_EQ(co_await to.flush(), 0);
            EXPECT_EQ(co_await from.read_until('\n'), "a line");
        });
        ctx->run();
    }
}

TEST(Owner, ACancelledCallIsOver) {
    auto main = []() -> task<> {
        auto [near, far] = net::socket::pair();
        buffered_reader from(near);
        EXPECT_THROW(co_await timeout(reads_a_line(from), 5ms), std::system_error);
        {
            scope s;
            s.spawn(reads_a_line(from));
            co_await yield();
            s.cancel();
        } // destroys the child
        co_await far.send("again\n");
        EXPECT_EQ(co_await from.read_until('\n'), "again");
    };
    run(main());
}

TEST(Owner, APlainDescriptorOnTwoContextsAtOnce) {
    auto [near, far] = net::socket::pair();
    io_context one;
    io_context two;
    auto waits = one.spawn([&]() -> task<int> {
        char c = 0;
        co_return co_await near.recv({&c, 1});
    });
    one.start();
    two.co_spawn([&]() -> task<> {
        EXPECT_EQ(co_await near.send("x"), 1);
        EXPECT_EQ(co_await far.send("y"), 1);
    });
    two.run();
    EXPECT_EQ(waits.get(), 1);
    one.stop();
    one.join();
}

// mistake 13: a direct descriptor is used on another context
// shows: `a direct descriptor is used on another context than the one that created it`, and -EBADF
TEST(Owner, ADirectDescriptorOfAnotherContext) {
    auto [near, far] = net::socket::pair();
    io_context one;
    io_context two;
    io::direct_descriptor direct(-1);
    one.co_spawn([&]() -> task<> {
        direct = co_await io::register_file(near.native_handle());
        EXPECT_EQ(co_await io::write(direct, "x"), 1);
    });
    one.run();
    const std::string printed = printed_by([&] {
        two.co_spawn([&]() -> task<> { EXPECT_EQ(co_await io::write(direct, "x"), -EBADF); });
        two.run();
    });
    EXPECT_EQ(printed.find("coil: a direct descriptor is used on another context") == 0, checks)
        << printed;
}

// mistake 13: a registered buffer is used on another context
// shows: `a registered buffer is used on another context than the one that it is registered with`
TEST(Owner, ARegisteredBufferOfAnotherContext) {
    auto [near, far] = net::socket::pair();
    std::vector<char> memory(4096, 'm');
    io_context one;
    io_context two;
    const std::string printed = printed_by([&] {
        one.co_spawn([&]() -> task<> {
            const io::registered_buffers registered{mutable_buffer(memory)};
            const auto buffer = registered[0].first(16);
            EXPECT_EQ(co_await io::write_fixed(near.native_handle(), buffer), 16);
            auto other = two.spawn([&]() -> task<int> {
                co_return co_await io::write_fixed(near.native_handle(), buffer);
            });
            two.start();
            EXPECT_EQ(co_await other, -EFAULT);
            two.stop();
        });
        one.run();
        two.join();
    });
    EXPECT_EQ(printed.find("coil: a registered buffer is used on another context") == 0, checks)
        << printed;
}

/// A socket that was created outside of the simulated world.
TEST(Owner, ARealDescriptorInASimulatedWorld) {
    auto [near, far] = net::socket::pair();
    const std::string printed = printed_by([&] {
        sim::world w(1);
        w.host("h").co_spawn([&]() -> task<> {
            const net::socket own = net::socket::create_tcp();
            EXPECT_EQ(co_await near.send("x"), -EBADF);
        });
        w.run();
    });
    EXPECT_EQ(printed.find("uses descriptor " + std::to_string(near.native_handle())) !=
                  std::string::npos,
              checks)
        << printed;
    EXPECT_EQ(printed.find("of the real system: the call gives -EBADF") != std::string::npos,
              checks)
        << printed;
}

} // namespace
