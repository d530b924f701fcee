// The admin socket: which users it accepts, its answers, and what a bad client can do to it.

#include "admin_support.hpp"

#include <coil/uring/detail/tsan.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::admin_client;
using coil_test::count_of;
using coil_test::get;
using coil_test::socket_place;

task<> sleeps() { co_await sleep_for(1h); }
task<> arrives_and_sleeps(std::atomic<int>& arrived) {
    ++arrived;
    arrived.notify_all();
    co_await sleep_for(1h);
}

TEST(Admin, AnswersWithTheMetricsOfEachContext) {
    const socket_place place;
    io_context a(place.options("a"));
    io_context b(place.options("b"));
    const std::string page = get(place.path(), "/metrics");
    EXPECT_TRUE(page.starts_with("HTTP/1.0 200 OK\r\n")) << page;
    EXPECT_EQ(count_of(page, "coil_tasks{context=\"a\"} 0"), 1U) << page;
    EXPECT_EQ(count_of(page, "coil_tasks{context=\"b\"} 0"), 1U);
}

TEST(Admin, ContextsOfTheSameNameAreDistinguished) {
    const socket_place place;
    io_context a(place.options("same"));
    io_context b(place.options("same"));
    const std::string page = get(place.path(), "/metrics");
    EXPECT_EQ(count_of(page, "coil_tasks{context=\"same\"} 0"), 1U) << page;
    EXPECT_EQ(count_of(page, "coil_tasks{number=\"2\",context=\"same\"} 0"), 1U) << page;
}

TEST(Admin, AnswersWithTheTasksOfARuntime) {
    const socket_place place;
    runtime_options options;
    options.contexts = 2;
    options.context = place.options("server");
    runtime rt(options);
    std::atomic<int> arrived = 0;
    rt.co_spawn(arrives_and_sleeps(arrived), "one");
    rt.co_spawn(arrives_and_sleeps(arrived), "two");
    std::thread running([&] { rt.run(); });
    for (int n = 0; (n = arrived) < 2;) {
        arrived.wait(n);
    }
    const std::string text = get(place.path(), "/tasks");
    EXPECT_EQ(count_of(text, "context server-"), 2U) << text;
    EXPECT_EQ(count_of(text, "'one'"), 1U) << text;
    EXPECT_EQ(count_of(text, "'two'"), 1U) << text;
    EXPECT_EQ(count_of(get(place.path(), "/tasks.json"), "\"waits_for\":\"sleep\""), 2U);
    EXPECT_EQ(count_of(get(place.path(), "/tasks.json?limit=0"), "\"waits_for\""), 0U);
    rt.stop();
    running.join();
}

TEST(Admin, AnswersWhileACoroutineBlocksItsContext) {
    const socket_place place;
    std::binary_semaphore go_on{0};
    std::binary_semaphore is_blocked{0};
    io_context ctx(place.options("blocked"));
    ctx.post([&] {
        is_blocked.release();
        go_on.acquire();
    });
    ctx.start();
    is_blocked.acquire();
    EXPECT_EQ(count_of(get(place.path(), "/metrics"), "coil_tasks{context=\"blocked\"}"), 1U);
    const std::string text = get(place.path(), "/tasks");
    EXPECT_EQ(count_of(text, "context blocked: no answer within 2 s"), 1U) << text;
    go_on.release();
}

TEST(Admin, DescribesTheProcess) {
    const socket_place place;
    const io_context ctx(place.options());
    const std::string text = get(place.path(), "/process.json");
    EXPECT_EQ(count_of(text, "\"pid\":" + std::to_string(::getpid()) + ','), 1U) << text;
    EXPECT_EQ(count_of(text, "\"name\":\"test_observe\""), 1U) << text;
}

TEST(Admin, RefusesUnknownRequests) {
    const socket_place place;
    const io_context ctx(place.options());
    EXPECT_EQ(count_of(get(place.path(), "/"), "/tasks.json"), 1U);
    EXPECT_TRUE(get(place.path(), "/secrets").starts_with("HTTP/1.0 404 Not Found"));
    const admin_client posts(place.path());
    posts.send("POST / HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(posts.rest().starts_with("HTTP/1.0 400 Bad Request"));
    const admin_client sends_too_much(place.path());
    sends_too_much.send(std::string(10'000, 'x'));
    EXPECT_EQ(sends_too_much.rest(), "");
    EXPECT_TRUE(get(place.path(), "/").starts_with("HTTP/1.0 200 OK"));
}

TEST(Admin, ASilentClientDelaysTheOthersButDoesNotStopThem) {
    const socket_place place;
    const io_context ctx(place.options());
    const admin_client silent(place.path());
    EXPECT_TRUE(get(place.path(), "/").starts_with("HTTP/1.0 200 OK"));
    EXPECT_EQ(silent.rest(), "");
}

TEST(Admin, G5_EndsWithTheLastContextAlthoughAClientIsSilent) {
    const socket_place place;
    std::optional<admin_client> silent;
    const auto began = std::chrono::steady_clock::now();
    {
        std::optional<io_context> first(std::in_place, place.options());
        const io_context last(place.options());
        first.reset();
        silent.emplace(place.path());
        EXPECT_TRUE(silent->is_connected());
    }
    if (!coil_test::sanitized) {
        EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
    }
    EXPECT_FALSE(std::filesystem::exists(place.path()));
    EXPECT_FALSE(admin_client(place.path()).is_connected());
}

TEST(Admin, OnlyItsOwnerMayConnect) {
    const socket_place place;
    const io_context ctx(place.options());
    struct ::stat status{};
    ASSERT_EQ(::lstat(place.path().c_str(), &status), 0);
    EXPECT_TRUE(S_ISSOCK(status.st_mode));
    EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(Admin, ReplacesTheSocketOfAProgramThatHasEnded) {
    const socket_place place;
    const int before = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    place.path().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(before, reinterpret_cast<const ::sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(before, 1), 0);
    EXPECT_THROW(io_context{place.options()}, std::system_error); // it listens
    ::close(before);
    const io_context ctx(place.options());
    EXPECT_TRUE(get(place.path(), "/").starts_with("HTTP/1.0 200 OK"));
}

TEST(Admin, ReplacesNoOtherFile) {
    const socket_place place;
    std::ofstream(place.path()) << "text";
    try {
        const io_context ctx(place.options());
        FAIL() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::address_in_use);
        EXPECT_EQ(count_of(error.what(), "coil: the admin socket '" + place.path() + "'"), 1U)
            << error.what();
    }
    std::string text;
    std::ifstream(place.path()) >> text;
    EXPECT_EQ(text, "text");
    EXPECT_THROW(io_context{coil_test::with(
                     [](io_context_options& o) { o.admin_socket = std::string(200, 'x'); })},
                 std::system_error);
}

TEST(Admin, ItsThreadDoesNotHideADeadlock) {
#ifdef COIL_TSAN
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
#endif
    if (std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                      std::filesystem::directory_iterator()) != 1) {
        GTEST_SKIP() << "earlier tests of this program have left threads";
    }
    const socket_place place;
    std::string report;
    io_context* running = nullptr;
    io_context_options options = place.options();
    options.on_deadlock = [&](const std::string& text) {
        report = text;
        running->stop();
    };
    io_context ctx(options);
    running = &ctx;
    channel<int> c(1);
    ctx.co_spawn([](channel<int>& from) -> task<> { co_await from.recv(); }(c));
    ctx.run();
    EXPECT_EQ(count_of(report, "channel::recv"), 1U) << report;
}

/// Calls a function when it is copied: a runtime copies its options for each of its contexts.
struct calls_when_copied {
    explicit calls_when_copied(std::function<void()> f) : call(std::move(f)) {}
    calls_when_copied(const calls_when_copied& other) : call(other.call) { call(); }
    calls_when_copied(calls_when_copied&&) noexcept = default;
    calls_when_copied& operator=(const calls_when_copied&) = delete;
    ~calls_when_copied() = default;
    void operator()(const std::string&) const {}
    std::function<void()> call;
};

/// A client is answered while the first context exists and the second one does not yet. The client
/// does not wait for the thread that constructs them, so ThreadSanitizer reports what that thread
/// writes without a lock.
TEST(Admin, WhileARuntimeIsConstructed) {
    const socket_place place;
    std::atomic<bool> answered = false;
    std::array<std::string, 3> answers;
    std::thread client([&] {
        std::error_code ignored;
        while (!std::filesystem::exists(place.path(), ignored) ||
               !admin_client(place.path()).is_connected()) {
            std::this_thread::yield();
        }
        while (count_of(answers[0], "context part-") == 0) { // the context may not be listed yet
            answers[0] = get(place.path(), "/tasks");
        }
        answers[1] = get(place.path(), "/tasks.json");
        answers[2] = get(place.path(), "/metrics");
        answered = true;
        answered.notify_all();
    });
    int contexts = 0;
    bool begun = false;
    runtime_options options;
    options.contexts = 3;
    options.context = place.options("part");
    options.context.on_deadlock = calls_when_copied([&] {
        if (begun && ++contexts == 2) {
            answered.wait(false);
        }
    });
    begun = true;
    runtime rt(std::move(options));
    client.join();
    EXPECT_EQ(contexts, 3);
    EXPECT_EQ(count_of(answers[0], "context part-"), 1U) << answers[0];
    EXPECT_EQ(count_of(answers[0], "context part-0: 0 tasks\n"), 1U) << answers[0];
    EXPECT_EQ(count_of(answers[1], "\"answered\":true"), 1U) << answers[1];
    EXPECT_EQ(count_of(answers[2], "coil_tasks{context="), 1U) << answers[2];
}

TEST(Admin, DuringAStormOfTasksAndShutdowns) {
    const socket_place place;
    const io_context keeps_it(place.options("keeps"));
    std::atomic<bool> over = false;
    std::thread asks([&] {
        while (!over) {
            EXPECT_TRUE(get(place.path(), "/tasks.json").starts_with("HTTP/1.0 200 OK"));
            EXPECT_TRUE(get(place.path(), "/metrics").starts_with("HTTP/1.0 200 OK"));
        }
    });
    for (int round = 0; round < coil_test::rounds(20, 400); ++round) {
        io_context ctx(place.options("comes"));
        ctx.start();
        for (int i = 0; i < 100; ++i) {
            ctx.co_spawn(sleeps(), "of the storm");
        }
        ctx.stop();
    }
    over = true;
    asks.join();
}

} // namespace
