// Dumps of all contexts on a signal.

#include "support.hpp"

#include <atomic>
#include <csignal>
#include <latch>
#include <set>
#include <sstream>
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

/// Captures what is written to stderr during its lifetime.
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
    /// Waits until the file on descriptor 2 contains `what` at least `times` times.
    static bool wait_for(std::string_view what, std::size_t times) {
        for (int i = 0; i < 4000; ++i) {
            std::string text;
            struct ::stat status{};
            ::fstat(STDERR_FILENO, &status);
            text.resize(static_cast<std::size_t>(status.st_size));
            // On some systems the capturing file is open only for writing: open it again.
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

task<> waits_until_set(coil::event& e) { co_await e.wait(); }

TEST(DumpSignal, WritesTheTasksOfAllContexts) {
    captured_stderr capture;
    io_context first(dumping("first"));
    io_context_options plain = dumping("second", 0);
    io_context second(std::move(plain));
    coil::event over;
    first.start();
    second.start();
    first.co_spawn(waits_until_set(over), "waiter one");
    second.co_spawn(waits_until_set(over), "waiter two");
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
    EXPECT_EQ(count_of(text, "context first: 1 task\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "context second: 1 task\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "'waiter one'"), 1U) << text;
    EXPECT_EQ(count_of(text, "event at"), 2U) << text;
}

TEST(DumpSignal, RestoresTheDispositionAfterTheLastContext) {
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

/// A coroutine blocks its context. The dump says that this context does not answer, and shows the
/// other one.
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

/// Each dump shows every task of the steady context, with what it waits for, and no task twice. The
/// contexts of the storm come and go; each of their tasks that a dump shows has a complete entry.
void expect_whole_dumps(const std::string& text) {
    const std::string title = "coil: tasks of process " + std::to_string(::getpid()) + '\n';
    std::size_t dumps = 0;
    std::size_t storms = 0;
    for (auto at = text.find(title); at != std::string::npos; ++dumps) {
        const auto next = text.find(title, at + 1);
        const std::string dump = text.substr(at, next - at);
        at = next;
        EXPECT_EQ(count_of(dump, "context steady: 3 tasks\n"), 1U) << dump;
        for (int i = 0; i < 3; ++i) {
            const std::string name = " 'steady " + std::to_string(i) + "' spawned at ";
            EXPECT_EQ(count_of(dump, name), 1U) << dump;
        }
        EXPECT_EQ(count_of(dump, ": event at "), 3U) << dump;
        storms += count_of(dump, "\ncontext storm-");
        std::set<std::string> frames;
        std::istringstream lines(dump);
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("  task ")) {
                EXPECT_TRUE(frames.insert(line.substr(0, line.find_first_of(": ", 9))).second)
                    << line << " twice in " << dump;
                EXPECT_TRUE(line.find(": sleep, ") != std::string::npos ||
                            line.ends_with(": ready to run") ||
                            line.find(": event at 0x") != std::string::npos ||
                            // too far back in the ready queue to be found there
                            line.ends_with(": running, or suspended for an unknown reason"))
                    << line;
            } else {
                EXPECT_TRUE(line.starts_with("coil: ") || line.starts_with("context ") ||
                            line.starts_with("    #0 "))
                    << line;
            }
        }
    }
    EXPECT_GE(dumps, 5U);
    EXPECT_GE(storms, 5U);
}

TEST(DumpSignal, TwiceAtOnceInAStormOfSpawnsAndDuringShutdowns) {
    captured_stderr capture;
    std::atomic<bool> over = false;
    std::thread storm([&] { // its contexts come and go
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
    event never;
    std::latch waiting(3);
    for (int i = 0; i < 3; ++i) {
        steady.co_spawn(
            [](event& e, std::latch& reached) -> task<> {
                reached.count_down();
                co_await e.wait();
            }(never, waiting),
            "steady " + std::to_string(i));
    }
    waiting.wait(); // a dump is taken between turns, when they are suspended
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
    expect_whole_dumps(text);
}

} // namespace
