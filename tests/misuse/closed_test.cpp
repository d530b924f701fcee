// Descriptors that are closed, or replaced, while a coroutine waits for them.

#include "support/printed.hpp"
#include "support/run.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;
using namespace coil_test;
using namespace std::chrono_literals;

namespace closed {

template <int>
task<> receives(net::socket& from) {
    char one = 0;
    co_await from.recv({&one, 1});
}
task<> sends(net::socket& to) {
    const std::string much(1 << 24, 'x');
    while (co_await to.send(much) > 0) {
    }
}
task<> reads_with_a_limit(pipe_end& from) {
    char one = 0;
    co_await timeout(from.read_some({&one, 1}), 1h);
}
task<> accepts(net::acceptor& from) { co_await from.accept(); }

/// Longer than the time after which a wait for a closed descriptor is reported, in several waits of
/// the loop.
task<> passes_time() {
    for (int i = 0; i < 10; ++i) {
        co_await sleep_for(10ms);
    }
}

/// Closes an object while a task waits for its descriptor.
template <class Object, class Wait, class Close>
std::string printed_when(std::optional<Object> object, Wait wait, Close close) {
    return printed_by([&] {
        io_context ctx;
        ctx.co_spawn(wait(*object), "waiter");
        ctx.co_spawn([](io_context& all, std::optional<Object>& one, Close& f) -> task<> {
            co_await sleep_for(1ms); // the loop submits the wait
            co_await f(one);
            co_await passes_time();
            all.stop();
        }(ctx, object, close));
        ctx.run();
    });
}
task<> destroys(auto& object) {
    object.reset();
    co_return;
}

constexpr const char* remedy =
    "The kernel keeps the file until that operation has ended, so the wait may last for ever\\. "
    "Ask the task to stop and await its end first, or call shutdown_read\\(\\)\\.\n";

// mistake 20: a socket is destroyed while another coroutine waits for it
// shows: `descriptor 7 of net::socket was closed while a coroutine waits for it`, with the task
TEST(ClosedWhileAwaited, ASocketThatReceives) {
    auto ends = net::socket::pair();
    expect_printed(printed_when(std::optional(std::move(ends.first)), receives<1>,
                                destroys<std::optional<net::socket>>),
                   "coil: descriptor [0-9]+ of net::socket was closed while a coroutine waits for "
                   "it \\(recv, in .*receives.*, task 'waiter' spawned at .*closed_test.cpp:[0-9]+"
                   "\\)\\. " +
                       std::string(remedy));
}

TEST(ClosedWhileAwaited, ASocketThatSends) {
    auto ends = net::socket::pair();
    expect_printed(printed_when(std::optional(std::move(ends.first)), sends,
                                destroys<std::optional<net::socket>>),
                   "coil: descriptor [0-9]+ of net::socket was closed while a coroutine waits for "
                   "it \\(send, in .*sends.*\\)\\. " +
                       std::string(remedy));
}

TEST(ClosedWhileAwaited, APipeThatIsReadWithALimit) {
    auto pipe = make_pipe();
    expect_printed(printed_when(std::optional(std::move(pipe.first)), reads_with_a_limit,
                                destroys<std::optional<pipe_end>>),
                   "coil: descriptor [0-9]+ of pipe_end was closed while a coroutine waits for "
                   "it \\(read, in .*reads_with_a_limit.*\\)\\. " +
                       std::string(remedy));
}

TEST(ClosedWhileAwaited, AnAcceptor) {
    expect_printed(printed_when(std::optional<net::acceptor>("127.0.0.1:0"), accepts,
                                destroys<std::optional<net::acceptor>>),
                   "coil: descriptor [0-9]+ of net::socket was closed while a coroutine waits for "
                   "it \\(accept, in .*\\)\\. " +
                       std::string(remedy));
}

// mistake 20: `co_await s.close()` while another coroutine waits for s
// shows: `descriptor 7 was closed while a coroutine waits for it`, with the task
TEST(ClosedWhileAwaited, ByAnAwait) {
    auto ends = net::socket::pair();
    const auto closes = [](std::optional<net::socket>& one) -> task<> {
        EXPECT_EQ(co_await one->close(), 0);
    };
    expect_printed(
        printed_when(std::optional(std::move(ends.first)), receives<2>, closes),
        "coil: descriptor [0-9]+ was closed while a coroutine waits for it \\(recv, in .*\\)\\. " +
            std::string(remedy));
}

TEST(ClosedWhileAwaited, AssignedTo) {
    auto ends = net::socket::pair();
    const auto assigns = [](std::optional<net::socket>& one) -> task<> {
        *one = net::socket();
        co_return;
    };
    expect_printed(printed_when(std::optional(std::move(ends.first)), receives<3>, assigns),
                   "coil: descriptor [0-9]+ of net::socket was closed while .*\n");
}

TEST(ClosedWhileAwaited, IsReportedOnceForEachFunction) {
    expect_printed(printed_by([] {
                       run([]() -> task<> {
                           for (int i = 0; i < 3; ++i) {
                               auto [a, b] = net::socket::pair();
                               std::optional one(std::move(a));
                               co_spawn(receives<4>(*one));
                               co_await sleep_for(1ms);
                               one.reset();
                               co_await passes_time();
                           }
                       }());
                   }),
                   "coil: descriptor [0-9]+ of net::socket was closed while .*\n");
}

TEST(ClosedWhileAwaited, NotIfTheWaitEnds) {
    auto ends = net::socket::pair();
    const auto shuts_down = [](std::optional<net::socket>& one) -> task<> {
        EXPECT_EQ(co_await one->shutdown_read(), 0);
        one.reset();
    };
    EXPECT_EQ(printed_when(std::optional(std::move(ends.first)), receives<5>, shuts_down), "");
    EXPECT_EQ(printed_by([] {
                  run([]() -> task<> {
                      auto [a, b] = net::socket::pair();
                      std::optional one(std::move(a));
                      co_spawn(receives<6>(*one));
                      co_await sleep_for(1ms);
                      one.reset();
                      b = net::socket(); // the end of the data
                      co_await passes_time();
                  }());
              }),
              "");
}

TEST(ClosedWhileAwaited, NotIfTheTaskIsCancelled) {
    EXPECT_EQ(printed_by([] {
                  run([]() -> task<> {
                      auto [a, b] = net::socket::pair();
                      std::optional one(std::move(a));
                      auto h = spawn(receives<7>(*one));
                      co_await sleep_for(1ms);
                      h.cancel();
                      one.reset();
                      co_await passes_time();
                      co_await std::move(h);
                      // an eager operation that was dropped
                      auto pending = std::make_unique<net::socket>(std::move(b));
                      char buf[4];
                      static_cast<void>(eager(pending->recv(buf)));
                      pending.reset();
                      co_await passes_time();
                  }());
              }),
              "");
}

TEST(ClosedWhileAwaited, NotIfTheLoopEnds) {
    EXPECT_EQ(printed_by([] {
                  run([]() -> task<> {
                      auto [a, b] = net::socket::pair();
                      net::acceptor ac("127.0.0.1:0");
                      co_spawn(receives<8>(a));
                      co_spawn(accepts(ac));
                      co_await sleep_for(1ms);
                  }());
              }),
              "");
}

TEST(ClosedWhileAwaited, NotIfTheNumberIsUsedAgain) {
    EXPECT_EQ(printed_by([] {
                  run([]() -> task<> {
                      for (int i = 0; i < 3; ++i) {
                          auto [a, b] = net::socket::pair();
                          scope s;
                          s.spawn(receives<9>(a));
                          co_await sleep_for(1ms);
                          EXPECT_EQ(co_await b.close(), 0);
                          co_await s.join();
                          EXPECT_EQ(co_await a.close(), 0);
                      }
                      co_await passes_time();
                  }());
              }),
              "");
}

// mistake 20: `dup2()` replaces the socket of an object
// shows: `the destructor of net::socket closes descriptor 7, which is another file`
TEST(DescriptorOwner, ReplacedByDup2) {
    const std::string printed = printed_by([] {
        const net::socket s = net::socket::create_tcp();
        const net::socket other = net::socket::create_tcp();
        EXPECT_EQ(::dup2(other.native_handle(), s.native_handle()), s.native_handle());
    });
    expect_printed(printed, "coil: the destructor of net::socket closes descriptor [0-9]+, which "
                            "is another file than the one it took: that was closed by its number, "
                            "or dup2\\(\\) has replaced it\\. Call close\\(\\) of its owner, or "
                            "release\\(\\) first\\.\n");
}

TEST(DescriptorOwner, OfASocketWhoseNumberAnotherFileGot) {
    int reused = -1;
    expect_printed(printed_by([&reused] {
                       const net::socket s = net::socket::create_tcp();
                       ::close(s.native_handle());
                       reused = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
                       EXPECT_EQ(reused, s.native_handle());
                   }),
                   "coil: the destructor of net::socket closes descriptor [0-9]+, which is another "
                   "file .*\n");
}

} // namespace closed
