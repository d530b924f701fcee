// Dumps of all contexts on a signal.

#include "support.hpp"

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::count_of;

io_context_options dumping(std::string name, int signal = SIGUSR2) {
    io_context_options options;
    options.name = std::move(name);
    options.dump_signal = signal;
    options.watchdog.enabled = watchdog_options::use::off;
    return options;
}

/// What is written to stderr while it exists.
class captured_stderr {
public:
    captured_stderr() { testing::internal::CaptureStderr(); }
    ~captured_stderr() {
        if (!is_read_) {
            testing::internal::GetCapturedStderr();
        }
    }
    std::string read() {
        is_read_ = true;
        return testing::internal::GetCapturedStderr();
    }
    /// Waits until the file on descriptor 2 contains `what` so many times.
    static bool wait_for(std::string_view what, std::size_t times) {
        for (int i = 0; i < 4000; ++i) {
            std::string text;
            struct ::stat status{};
            ::fstat(STDERR_FILENO, &status);
            text.resize(static_cast<std::size_t>(status.st_size));
            // The capturing file is open for writing only on some systems: read it by its name.
            const std::string path = "/proc/self/fd/2";
            const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
            const auto n = ::read(fd, text.data(), text.size());
            ::close(fd);
            text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
            if (count_of(text, what) >= times) {
                return true;
            }
            std::this_thread::sleep_for(5ms);
        }
        return false;
    }

private:
    bool is_read_ = false;
};

task<> waits_for(coil::event& e) { co_await e.wait(); }

TEST(DumpSignal, WritesTheTasksOfAllContexts) {
    captured_stderr capture;
    io_context first(dumping("first"));
    io_context_options plain = dumping("second", 0);
    io_context second(std::move(plain));
    coil::event over;
    first.start();
    second.start();
    first.co_spawn(waits_for(over), "waiter one");
    second.co_spawn(waits_for(over), "waiter two");
    while (first.metrics().tasks == 0 || second.metrics().tasks == 0) {
        std::this_thread::sleep_for(1ms);
    }
    ::raise(SIGUSR2);
    EXPECT_TRUE(captured_stderr::wait_for("waiter two", 1));
    over.set();
    first.join();
    second.join();
    const std::string text = capture.read();
    EXPECT_EQ(count_of(text, "coil: tasks of process"), 1U) << text;
    EXPECT_EQ(count_of(text, "context first: 1 tasks"), 1U) << text;
    EXPECT_EQ(count_of(text, "context second: 1 tasks"), 1U) << text;
    EXPECT_EQ(count_of(text, "'waiter one'"), 1U) << text;
    EXPECT_EQ(count_of(text, "event at"), 2U) << text;
}

TEST(DumpSignal, RestoresTheDispositionBehindTheLastContext) {
    struct ::sigaction before{};
    struct ::sigaction now{};
    ::sigaction(SIGUSR2, nullptr, &before);
    {
        io_context one(dumping("one"));
        {
            io_context two(dumping("two"));
        }
        ::sigaction(SIGUSR2, nullptr, &now);
        EXPECT_NE(now.sa_handler, before.sa_handler);
    }
    ::sigaction(SIGUSR2, nullptr, &now);
    EXPECT_EQ(now.sa_handler, before.sa_handler);
    EXPECT_THROW(io_context(dumping("impossible", SIGKILL)), std::system_error);
    EXPECT_THROW(io_context(dumping("impossible", 1000)), std::system_error);
}

/// A coroutine blocks the context: it is reported, the others are dumped.
TEST(DumpSignal, WhileACoroutineBlocksItsContext) {
    captured_stderr capture;
    io_context blocked(dumping("blocked"));
    io_context other(dumping("other"));
    std::atomic<bool> over = false;
    std::atomic<bool> begun = false;
    blocked.start();
    other.start();
    blocked.co_spawn([](std::atomic<bool>& there, std::atomic<bool>& end) -> task<> {
        there = true;
        while (!end) {
            std::this_thread::sleep_for(1ms);
        }
        co_return;
    }(begun, over));
    while (!begun) {
        std::this_thread::sleep_for(1ms);
    }
    ::raise(SIGUSR2);
    EXPECT_TRUE(captured_stderr::wait_for("context other", 1));
    over = true;
    blocked.join();
    other.join();
    const std::string text = capture.read();
    EXPECT_EQ(count_of(text, "context blocked: no answer"), 1U) << text;
}

TEST(DumpSignal, TwiceAtOnceInAStormOfSpawnsAndDuringShutdowns) {
    captured_stderr capture;
    std::atomic<bool> over = false;
    std::thread storm([&] { // its own context comes and goes
        for (int i = 0; i < coil_test::rounds(60, 2000); ++i) {
            runtime_options options;
            options.contexts = 2;
            options.context = dumping("storm");
            runtime rt(options);
            for (int n = 0; n < 200; ++n) {
                rt.co_spawn([](std::chrono::microseconds d) -> task<> {
                    co_await sleep_for(d);
                }(n % 7 == 0 ? std::chrono::microseconds(1h) : n * 1us));
            }
            rt.co_spawn([](runtime& all) -> task<> {
                co_await sleep_for(1ms);
                all.stop();
            }(rt));
            rt.run();
        }
        over = true;
    });
    io_context steady(dumping("steady"));
    steady.start();
    std::vector<std::thread> senders;
    for (int i = 0; i < 2; ++i) {
        senders.emplace_back([&] {
            while (!over) {
                ::kill(::getpid(), SIGUSR2);
                std::this_thread::sleep_for(500us);
            }
        });
    }
    storm.join();
    for (std::thread& each : senders) {
        each.join();
    }
    steady.stop();
    steady.join();
    const std::string text = capture.read();
    EXPECT_GE(count_of(text, "coil: tasks of process"), 5U);
    EXPECT_EQ(count_of(text, "context steady: no answer"), 0U);
}

} // namespace
