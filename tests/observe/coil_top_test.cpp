// Runs coil-top (tools/coil-top) on this program.

#include "admin_support.hpp"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <semaphore>
#include <sstream>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>

using namespace coil;
using namespace std::chrono_literals;

namespace watched {

task<> sleeps() { co_await sleep_for(1h); }
task<> session(int fd) {
    char c = 0;
    co_await io::recv(fd, mutable_buffer(&c, 1));
}
task<> waits(mutex& m) {
    co_await m.lock();
    m.unlock();
}
task<> holds(mutex& m) {
    co_await m.lock();
    co_await sleep_for(1h);
}
task<> locks_two(mutex& first, mutex& second, event& both) {
    co_await first.lock();
    co_await both.wait();
    co_await second.lock();
}
task<> sends(channel<int>& c) { co_await c.send(1); }
task<> session_with_a_limit(int fd) {
    char c = 0;
    co_await timeout(io::recv(fd, mutable_buffer(&c, 1)), 1h);
}
[[gnu::noinline]] void blocks_for(std::chrono::milliseconds time) {
    std::this_thread::sleep_for(time);
    asm volatile("" ::: "memory"); // no tail call
}
task<> blocks() {
    co_await yield();
    blocks_for(300ms);
}

} // namespace watched

namespace {

using coil_test::count_of;
using coil_test::output_of;

/// A connected pair of TCP sockets.
class tcp_pair {
public:
    tcp_pair() {
        const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<::sockaddr*>(&address);
        EXPECT_EQ(::bind(listener, any, size), 0);
        EXPECT_EQ(::listen(listener, 1), 0);
        EXPECT_EQ(::getsockname(listener, any, &size), 0);
        client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::connect(client, any, size), 0);
        server = ::accept(listener, nullptr, nullptr);
        EXPECT_EQ(::getsockname(client, any, &size), 0);
        client_port = ntohs(address.sin_port);
        ::close(listener);
    }
    tcp_pair(const tcp_pair&) = delete;
    tcp_pair& operator=(const tcp_pair&) = delete;
    ~tcp_pair() {
        ::close(client);
        ::close(server);
    }
    int client = -1;
    int server = -1;
    std::uint16_t client_port = 0;
};

class CoilTop : public ::testing::Test {
protected:
    void SetUp() override {
        if (std::system("python3 --version > /dev/null 2>&1") != 0) {
            GTEST_SKIP() << "python3 is not installed";
        }
        ASSERT_TRUE(mutex_.try_lock());
        for (int i = 0; i < 30; ++i) {
            ctx_.co_spawn(watched::sleeps(), "sleeper");
        }
        for (int i = 0; i < 20; ++i) {
            ctx_.co_spawn(watched::waits(mutex_));
        }
        ctx_.co_spawn(watched::session(pair_.server), "session");
        ctx_.start();
        other_.start();
    }

    [[nodiscard]] io_context_options options(std::string name) const {
        io_context_options some = place_.options(std::move(name));
        some.watchdog.enabled = watchdog_options::use::on;
        some.watchdog.interval = 0ns;
        some.watchdog.pool_delay = 1h;
        some.watchdog.on_report = [this](const stall_report& report) {
            ends_ += report.has_ended && report.what == stall_report::kind::long_turn ? 1 : 0;
            ends_.notify_all();
        };
        return some;
    }

    /// `main` has been blocked by a task, and `other` has more tasks than `main`.
    void have_a_stall_and_more_tasks() {
        for (int i = 0; i < 100; ++i) {
            other_.co_spawn(watched::sleeps(), "extra");
        }
        ctx_.co_spawn(watched::blocks(), "blocker");
        ends_.wait(0);
    }

    [[nodiscard]] std::string run(const std::string& arguments) const {
        return output_of("python3 -B " COIL_TOP " " + place_.path() + " " + arguments);
    }

    coil_test::socket_place place_;
    tcp_pair pair_;
    mutable std::atomic<int> ends_ = 0;
    mutex mutex_;
    io_context ctx_{options("main")};
    io_context other_{options("other")};
};

TEST_F(CoilTop, ListsMoreTasksThanItCounts) {
    constexpr std::size_t count = 12'000;
    for (std::size_t i = 0; i < count; ++i) {
        other_.co_spawn(watched::sleeps());
    }
    EXPECT_EQ(count_of(run("--tasks"), "other: watched::sleeps: sleep"), count);
    EXPECT_EQ(count_of(run("--once --delay 0.2"), "Not all tasks are counted below"), 1U);
}

TEST_F(CoilTop, OneScreen) {
    const std::string text = run("--once --delay 0.2");
    EXPECT_EQ(count_of(text, "test_observe (pid " + std::to_string(::getpid())), 1U) << text;
    EXPECT_EQ(count_of(text, "\nmain "), 2U)
        << text; // in the list of contexts and in that of ready delays
    EXPECT_EQ(count_of(text, "\nother "), 2U) << text;
    EXPECT_EQ(count_of(text, "      30 sleep\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "      20 mutex\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "       1 recv\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "      30 sleeper\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "watched::waits\n"), 2U)
        << text; // in the list of names and in that of frames
    if (!coil_test::sanitized) {
        EXPECT_EQ(count_of(text, "unknown watched::waits"), 0U) << text;
    }
}

TEST_F(CoilTop, ConnectionsThatHaveBeenIdleAndTheirPeers) {
    std::this_thread::sleep_for(300ms);
    const std::string text = run("--tasks --idle 0.2");
    EXPECT_EQ(count_of(text, "\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "127.0.0.1:" + std::to_string(pair_.client_port)), 1U) << text;
    EXPECT_EQ(count_of(text, "nothing received for"), 1U) << text;
    EXPECT_EQ(count_of(text, "coil_top_test.cpp"), 1U) << text;
    EXPECT_EQ(run("--tasks --idle 3600"), "");
    EXPECT_EQ(count_of(run("--tasks --filter mutex"), "mutex at 0x"), 20U);
}

TEST_F(CoilTop, AsJson) {
    const std::string text = run("--json --delay 0.1");
    EXPECT_EQ(count_of(text, "\"sleep\": 30"), 1U) << text;
    EXPECT_EQ(count_of(text, "\"load\":"), 2U) << text;
}

TEST_F(CoilTop, NamesCannotControlTheTerminal) {
    ctx_.co_spawn(watched::sleeps(), "\x1b[31mred\"\\\x01");
    const std::string text = run("--once --delay 0.1");
    EXPECT_EQ(count_of(text, "\x1b"), 0U);
    EXPECT_EQ(count_of(text, "?[31mred\"\\?"), 1U) << text;
}

TEST_F(CoilTop, ContextsAndTasksInTheRequestedOrder) {
    have_a_stall_and_more_tasks();
    const auto follow = [](const std::string& text, std::initializer_list<std::string_view> lines) {
        std::size_t at = 0;
        for (const std::string_view line : lines) {
            at = text.find(line, at);
            if (at == std::string::npos) {
                return testing::AssertionFailure() << "no '" << line << "' behind the others in\n"
                                                   << text;
            }
            at += line.size();
        }
        return testing::AssertionSuccess();
    };
    EXPECT_TRUE(follow(run("--once --delay 0.1"),
                       {"\nCONTEXT", "\nmain ", "\nother ", "\nREADY DELAY", "\nmain ", "\nother ",
                        "     130 sleep\n      20 mutex\n       1 recv\n", "     100 extra\n",
                        "      30 sleeper\n", "\nFRAMES BY FUNCTION\n"}));
    EXPECT_TRUE(follow(run("--once --delay 0.1 --sort tasks --order name"),
                       {"\nother ", "\nmain ", "\nREADY DELAY", "\nother ", "\nmain ",
                        "      20 mutex\n       1 recv\n     130 sleep\n", "     100 extra\n",
                        "       1 session\n      30 sleeper\n"}));
}

TEST_F(CoilTop, ShowsTheHolderOfTheLockThatOthersWaitFor) {
    mutex held;
    other_.co_spawn(watched::holds(held), "the holder");
    for (int i = 0; i < 3; ++i) {
        other_.co_spawn(watched::waits(held), "a waiter");
    }
    std::string text;
    for (int i = 0; count_of(text, ", locked by 0x") != 3 && i < 100; ++i) {
        text = run("--tasks --filter 'other: a waiter: mutex'");
    }
    EXPECT_EQ(count_of(text, "\n"), 3U) << text;
    EXPECT_EQ(count_of(text, " 'the holder' in watched::waits"), 3U) << text;

    const std::string locks = run("--locks --filter 'the holder'");
    EXPECT_EQ(count_of(locks, "       3 mutex at 0x"), 1U) << locks;
    EXPECT_EQ(count_of(locks, ", locked by 'the holder' (0x"), 1U) << locks;
    EXPECT_EQ(count_of(locks, "\n  the holder: other: the holder: sleep, "), 1U) << locks;
    EXPECT_EQ(count_of(locks, "\n    #0 watched::holds(coil::mutex&) ["), 1U) << locks;
    EXPECT_EQ(count_of(locks, "\n  waiting: 3 a waiter\n"), 1U) << locks;
    EXPECT_EQ(count_of(locks, "deadlock"), 0U) << locks;
    // The lock that no task holds is waited for by more.
    EXPECT_TRUE(run("--locks").starts_with("      20 mutex at 0x")) << run("--locks");
    EXPECT_EQ(count_of(run("--once --delay 0.1"), ", locked by 'the holder' (0x"), 1U);
    const std::string document = run("--json --delay 0.1");
    EXPECT_EQ(count_of(document, "\"holder_waits_for\": \"sleep, "), 1U) << document;
    other_.stop(); // before the mutex is destroyed
    other_.join();
}

TEST_F(CoilTop, ShowsTheFunctionThatHasBlockedTheThreadAndForHowLong) {
    have_a_stall_and_more_tasks();
    const std::string text = run("--stalls --filter blocker");
    const auto at = text.find(
        " ms main: a coroutine blocked the thread in watched::blocks_for, task 'blocker', ");
    ASSERT_NE(at, std::string::npos) << text;
    // Not equal, because a stall of an earlier test at the same place may have been longer.
    EXPECT_GE(
        std::stod(text.substr(text.rfind('\n', at) + 1)),
        std::floor(std::chrono::duration<double, std::milli>(ctx_.metrics().longest_turn).count()));
    EXPECT_EQ(count_of(text, "    spawned at "), 1U) << text;
    EXPECT_EQ(count_of(text, "coil_top_test.cpp:"), 1U) << text;
    EXPECT_EQ(count_of(text, "\n  stack:\n    #0 "), 1U) << text;
    EXPECT_EQ(count_of(text, "\n  awaits:\n    #0 watched::blocks()"), 1U) << text;
    EXPECT_EQ(run("--stalls --filter 'nothing of this name'"), "");
}

TEST_F(CoilTop, PoolsOfThreads) {
    blocking_pool_options small;
    small.threads = 1;
    small.name = "pool of top";
    std::counting_semaphore<> go_on{0}; // outlives the threads
    blocking_pool pool(small);
    for (int i = 0; i < 3; ++i) {
        pool.execute([&] { go_on.acquire(); });
    }
    while (pool.metrics().queued != 2) { // its thread has taken one
        std::this_thread::yield();
    }
    const std::string page = coil_test::get(place_.path(), "/metrics");
    EXPECT_EQ(count_of(page, "coil_pool_threads{pool=\"pool of top\"} 1\n"), 1U) << page;
    std::string alone;
    write_prometheus(alone, pool.metrics(), {{"pool", small.name}});
    std::istringstream lines(alone);
    std::size_t samples = 0;
    for (std::string line; std::getline(lines, line);) {
        EXPECT_EQ(count_of(page, line + '\n'), 1U) << line << '\n' << page;
        samples += line.starts_with("coil_pool_") ? 1 : 0;
    }
    EXPECT_EQ(samples, 7U) << alone;
    const std::string text = run("--once --delay 0.1");
    EXPECT_EQ(
        count_of(text, "\npool of top             1      0        2        0         2     0\n"),
        1U)
        << text;
    go_on.release(3);
}

TEST_F(CoilTop, LocksThatWaitForEachOther) {
    mutex first;
    mutex second;
    event both;
    other_.co_spawn(watched::locks_two(first, second, both), "left");
    other_.co_spawn(watched::locks_two(second, first, both), "right");
    std::string text;
    for (int i = 0; count_of(text, ": event at 0x") != 2 && i < 100; ++i) {
        text = run("--tasks --filter other:");
    }
    both.set(); // each has a lock
    for (int i = 0; count_of(text, ", a deadlock\n") != 2 && i < 100; ++i) {
        text = run("--locks --filter deadlock");
    }
    EXPECT_EQ(count_of(text, ", a deadlock\n"), 2U) << text;
    EXPECT_EQ(count_of(text, "  a deadlock: 'left', which waits for 'right', which waits for "
                             "'left'\n"),
              1U)
        << text;
    other_.stop(); // before the mutexes are destroyed
    other_.join();
}

TEST_F(CoilTop, LongestIdleFirst) {
    std::this_thread::sleep_for(50ms);
    const tcp_pair later;
    other_.co_spawn(watched::session(later.server), "later");
    std::string text;
    for (int i = 0; count_of(text, "\n") != 2 && i < 100; ++i) {
        text = run("--tasks --idle 0.001");
    }
    const auto session = text.find("main: session: recv");
    EXPECT_LT(session, text.find("other: later: recv")) << text;
    EXPECT_EQ(session, 0U) << text;
    other_.stop();
    other_.join();
}

TEST_F(CoilTop, TimesAndChannels) {
    channel<int> full(2);
    ASSERT_TRUE(full.try_send(1));
    ASSERT_TRUE(full.try_send(2));
    other_.co_spawn(watched::sends(full), "sender");
    other_.co_spawn(watched::session_with_a_limit(pair_.client), "limited");
    std::string text;
    for (int i = 0; count_of(text, "\n") != 2 && i < 100; ++i) {
        text = run("--tasks --filter other:");
    }
    EXPECT_EQ(count_of(text, ", 2 of 2 in watched::sends"), 1U) << text;
    EXPECT_EQ(count_of(text, ", limit in 60 min in watched::session_with_a_limit"), 1U) << text;
    EXPECT_EQ(count_of(text, ", for "), 1U) << text;
    other_.stop(); // before the channel is destroyed
    other_.join();
}

TEST_F(CoilTop, OnATerminalWithKeys) {
    have_a_stall_and_more_tasks();
    output_of("python3 -B " DRIVE_COIL_TOP " screen " COIL_TOP " " + place_.path());
}

TEST_F(CoilTop, AsAPage) {
    have_a_stall_and_more_tasks();
    output_of("python3 -B " DRIVE_COIL_TOP " page " COIL_TOP " " + place_.path());
}

TEST_F(CoilTop, AsAPageInABrowser) {
    if (std::system("chromium --version > /dev/null 2>&1") != 0) {
        GTEST_SKIP() << "chromium is not installed";
    }
    have_a_stall_and_more_tasks();
    output_of("python3 -B " DRIVE_COIL_TOP " browser " COIL_TOP " " + place_.path());
}

TEST_F(CoilTop, ReportsWhyThereIsNoAnswer) {
    std::FILE* const pipe =
        ::popen("python3 -B " COIL_TOP " /no/such/socket --once 2>&1; echo status $?", "r");
    std::array<char, 500> text{};
    const std::size_t size = std::fread(text.data(), 1, text.size(), pipe);
    EXPECT_EQ(::pclose(pipe), 0);
    EXPECT_EQ(std::string_view(text.data(), size),
              "coil-top: /no/such/socket: [Errno 2] No such file or directory\nstatus 1\n");
}

} // namespace
