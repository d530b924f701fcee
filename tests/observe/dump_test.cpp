// dump_tasks(): every task, and what it waits for.

#include "support.hpp"
#include "support/descriptors.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include <sys/socket.h>

using namespace coil;
using namespace std::chrono_literals;

namespace observed {

constexpr int each = 50;

task<> sleeps() { co_await sleep_for(1h); }
task<> naps() { co_await sleeps(); }
task<> receives(int fd) {
    char c = 0;
    co_await io::recv(fd, mutable_buffer(&c, 1));
}
task<> receives_with_a_limit(int fd) {
    char c = 0;
    co_await timeout(io::recv(fd, mutable_buffer(&c, 1)), 1h);
}
task<> locks(mutex& m) {
    co_await m.lock();
    m.unlock();
}
task<> takes(channel<int>& c) { co_await c.recv(); }
task<> waits(event& e) { co_await e.wait(); }
task<> joins(join_handle<>& handle) { co_await handle; }
task<> two_children(int fd) { co_await when_all(sleeps(), receives(fd)); }
task<> limited_sleep() { co_await timeout(sleeps(), 2h); }
task<> leaves_room() {
    char large[3000];
    large[0] = 0;
    co_await sleep_for(1h);
    large[1] = large[0];
}

struct alignas(64) aligned {
    char data[64];
};
task<aligned> sleeps_aligned() {
    co_await sleep_for(1h);
    co_return aligned{};
}
/// Records the address of its frame. Its result is a part of the promise.
task<aligned> records_its_frame(const void*& frame) {
    struct recorder {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> self) const noexcept {
            at = self.address();
            return false;
        }
        void await_resume() const noexcept {}
        const void*& at;
    };
    co_await recorder{frame};
    co_await sleep_for(1h);
    co_return aligned{};
}
task<> awaits_aligned(const void*& frame) { static_cast<void>(co_await records_its_frame(frame)); }

task<> joins_aligned() { static_cast<void>(co_await spawn(sleeps_aligned(), "aligned")); }

} // namespace observed

namespace {

using coil_test::connection;
using coil_test::count_of;
using coil_test::dump_of;
using coil_test::hex;
using observed::each;

TEST(DumpTasks, NamesEachKindOfWait) {
    const connection quiet;
    const std::string fd = "fd " + std::to_string(quiet.ends[0]);
    mutex m;
    ASSERT_TRUE(m.try_lock());
    channel<int> c(1);
    event e;
    io_context ctx;
    std::vector<std::optional<join_handle<>>> handles(each);
    for (int i = 0; i < each; ++i) {
        ctx.co_spawn(observed::naps());
        ctx.co_spawn(observed::receives(quiet.ends[0]));
        ctx.co_spawn(observed::receives_with_a_limit(quiet.ends[0]), "limited");
        ctx.co_spawn(observed::locks(m));
        ctx.co_spawn(observed::takes(c));
        ctx.co_spawn(observed::waits(e));
        ctx.co_spawn(observed::two_children(quiet.ends[0]));
        ctx.co_spawn(observed::limited_sleep());
        handles[i].emplace(ctx.spawn(observed::leaves_room(), "joined"));
        ctx.co_spawn(observed::joins(*handles[i]));
    }
    const std::string text = dump_of(ctx);
    EXPECT_EQ(count_of(text, "\n  task "), 10U * each + 1) << text;
    EXPECT_EQ(count_of(text, ": sleep, "), 4U * each) << text;
    EXPECT_EQ(count_of(text, ": recv " + fd + "\n"), 2U * each) << text;
    EXPECT_EQ(count_of(text, ": recv " + fd + ", for 0.0"), 1U * each) << text;
    EXPECT_EQ(count_of(text, " s, limit in 359"), 1U * each) << text;
    EXPECT_EQ(count_of(text, " 'limited' spawned at "), 1U * each) << text;
    EXPECT_EQ(count_of(text, " s left, limit in "), 1U * each) << text;
    EXPECT_EQ(count_of(text, ": mutex at " + hex(&m)), 1U * each) << text;
    EXPECT_EQ(count_of(text, ": channel::recv at " + hex(&c) + ", 0 of 1\n"), 1U * each) << text;
    EXPECT_EQ(count_of(text, ": event at " + hex(&e)), 1U * each) << text;
    EXPECT_EQ(count_of(text, ": the end of a spawned task"), 1U * each) << text;
    EXPECT_EQ(count_of(text, ": 2 children\n"), 1U * each) << text;
    EXPECT_EQ(count_of(text, "\n    child "), 3U * each) << text;
    EXPECT_EQ(count_of(text, "#0 observed::sleeps() ["), 3U * each) << text;
    EXPECT_EQ(count_of(text, "#1 observed::naps() ["), 1U * each) << text;
}

task<> serves(supervisor& all, int fd) {
    for (int i = 0; i < 3; ++i) {
        static_cast<void>(all.spawn(observed::receives(fd), "session"));
    }
    co_await sleep_for(1h);
}
task<> serves_two(int fd) {
    supervisor all{{.max_children = 2}};
    co_await serves(all, fd);
}
constexpr unsigned scoped_line = __LINE__ + 3;
task<> joins_a_scope(int fd) {
    scope all;
    all.spawn(observed::receives(fd), "scoped");
    co_await all.join();
}

/// In front of its promise there may be zeros instead of functions.
TEST(DumpTasks, HasATaskWhoseResultIsAligned) {
    io_context ctx;
    ctx.co_spawn(observed::joins_aligned());
    EXPECT_EQ(count_of(dump_of(ctx), "'aligned'"), 1U);
}

TEST(DumpTasks, ShowsTheChildrenOfScopesAndSupervisors) {
    const connection quiet;
    io_context ctx;
    ctx.co_spawn(serves_two(quiet.ends[0]), "two sessions");
    ctx.co_spawn(joins_a_scope(quiet.ends[0]), "joins");
    const std::string text = dump_of(ctx);
    EXPECT_EQ(count_of(text, "2 children, 1 more wait to begin"), 1U) << text;
    EXPECT_EQ(count_of(text, " 'session' spawned at "), 2U) << text;
    EXPECT_EQ(count_of(text, ": 1 child, joined by 0x"), 1U) << text;
    const std::size_t known = coil_test::sanitized ? 0 : 1; // frames of another allocator
    EXPECT_EQ(count_of(text, " 'two sessions'\n"), known) << text;
    EXPECT_EQ(count_of(text, " 'joins'\n"), known) << text;
    EXPECT_EQ(
        count_of(text, "'scoped' spawned at " __FILE__ ":" + std::to_string(scoped_line) + ", 0.0"),
        1U)
        << text;
    EXPECT_EQ(count_of(text, ": recv fd "), 3U) << text;
    EXPECT_EQ(count_of(text, ": the children of the scope or supervisor at 0x"), 1U) << text;
}

TEST(DumpTasks, ShowsWhatIsReadyOrElsewhere) {
    io_context ctx;
    std::atomic<bool> done = false;
    ctx.co_spawn(
        [](std::atomic<bool>& d) -> task<> { co_await blocking([&d] { d.wait(false); }); }(done));
    ctx.co_spawn([](io_context& here, std::atomic<bool>& d) -> task<> {
        co_await sleep_for(1ms);
        here.co_spawn(observed::sleeps(), "new");
        const std::string text = here.dump_tasks();
        EXPECT_EQ(count_of(text, " 'new' "), 1U) << text;
        EXPECT_EQ(count_of(text, ": ready to run\n"), 1U) << text;
        EXPECT_EQ(count_of(text, ": work on another thread\n"), 1U) << text;
        EXPECT_EQ(count_of(text, ": running, or suspended"), 1U) << text;
        d = true;
        d.notify_all();
        here.stop();
    }(ctx, done));
    ctx.run();
}

struct gate {
    std::atomic<bool> is_open = false;
    std::atomic<bool> was_passed = false;

    void open() {
        is_open = true;
        is_open.notify_all();
        was_passed.wait(false);
    }
};
async_task<int, new_thread_executor> passes(std::shared_ptr<gate> one) {
    one->is_open.wait(false);
    one->was_passed = true;
    one->was_passed.notify_all();
    co_return 1;
}

TEST(DumpTasks, ShowsWhoAwaitsAnAsyncTask) {
    io_context ctx;
    ctx.co_spawn([](io_context& here) -> task<> {
        const auto one = std::make_shared<gate>();
        here.co_spawn([](std::shared_ptr<gate> its) -> task<> { co_await passes(its); }(one));
        co_await sleep_for(1ms);
        const std::string text = here.dump_tasks();
        EXPECT_EQ(count_of(text, ": work on another thread\n"), 1U) << text;
        EXPECT_EQ(count_of(text, ": running, or suspended"), 1U) << text;
        one->open();
    }(ctx));
    ctx.run();
}

/// The context ends while an async_task goes on that one of its tasks awaits.
TEST(DumpTasks, AnAwaitedAsyncTaskDoesNotDelayTheEnd) {
    const auto one = std::make_shared<gate>();
    {
        io_context ctx;
        ctx.co_spawn([](std::shared_ptr<gate> its) -> task<> { co_await passes(its); }(one));
        ctx.co_spawn([](io_context& here) -> task<> {
            co_await sleep_for(1ms);
            here.stop();
        }(ctx));
        ctx.run();
    }
    EXPECT_FALSE(one->was_passed);
    one->open();
}

TEST(DumpTasks, StopsAtItsLimit) {
    io_context ctx;
    for (int i = 0; i < 100; ++i) {
        ctx.co_spawn(observed::sleeps());
    }
    EXPECT_EQ(ctx.dump_tasks(), "context io_context: 0 tasks, 100 in its inbox\n");
    ctx.co_spawn([](io_context& here) -> task<> {
        const std::string text = here.dump_tasks(10);
        EXPECT_EQ(count_of(text, "\n  task "), 10U) << text;
        EXPECT_EQ(count_of(text, "not all of them shown"), 1U) << text;
        EXPECT_EQ(count_of(text, "\n  and 91 more\n"), 1U) << text;
        EXPECT_EQ(count_of(here.dump_tasks(), "\n  task "), 101U);
        EXPECT_EQ(count_of(here.dump_tasks(), " more\n"), 0U);
        here.stop();
        co_return;
    }(ctx));
    ctx.run();
}

TEST(DumpTasks, AsJson) {
    io_context ctx(coil_test::with([](auto& o) { o.name = "a \"quoted\" name"; }));
    ctx.co_spawn(observed::naps(), "n");
    ctx.start();
    std::string text = ctx.dump_tasks_json();
    while (text.find("\"sleep\"") == std::string::npos) {
        std::this_thread::sleep_for(1ms);
        text = ctx.dump_tasks_json();
    }
    ctx.stop();
    ctx.join();
    const std::string lines = coil_test::parsed(text);
    EXPECT_EQ(count_of(lines, "context a \"quoted\" name: 1 tasks, 0 arriving, complete\n"), 1U)
        << lines;
    // 3599.9, or 3600 in the first moment
    EXPECT_EQ(count_of(lines, "task n: sleep left_s=3"), 1U) << lines;
    EXPECT_EQ(count_of(lines, " awaits observed::sleeps() < observed::naps()\n"), 1U) << lines;
}

// ---- names

task<> fails() {
    co_await sleep_for(1ms);
    throw std::runtime_error("lost cause");
}
task<int> gives_one() { co_return 1; }

/// An over-aligned result does not move the promise away from the start of the frame.
TEST(DumpTasks, FramesOfOverAlignedResults) {
    const void* spawned = nullptr;
    const void* awaited = nullptr;
    io_context ctx;
    [[maybe_unused]] const auto handle = ctx.spawn(observed::records_its_frame(spawned), "spawned");
    ctx.co_spawn(observed::awaits_aligned(awaited), "awaits");
    const std::string text = dump_of(ctx);
    EXPECT_NE(text.find("task " + hex(spawned) + " 'spawned'"), std::string::npos)
        << hex(spawned) << '\n'
        << text;
    EXPECT_EQ(count_of(text, "\n    #0 observed::records_its_frame("), 2U) << text;
    EXPECT_EQ(count_of(text, ": sleep, "), 2U) << text;
    EXPECT_NE(awaited, nullptr);
}

/// Nothing is stored for a task without a name: the message has its coroutine, not the place.
TEST(TaskNames, WithoutOneTheMessageOfAnUnhandledExceptionHasTheCoroutine) {
    testing::internal::CaptureStderr();
    io_context ctx(coil_test::with([](auto& o) { o.name = "front"; }));
    ctx.co_spawn(fails());
    ctx.run();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("front: an unhandled exception: lost cause ("), std::string::npos) << said;
    EXPECT_NE(said.find("in (anonymous namespace)::fails() ["), std::string::npos) << said;
}

TEST(TaskNames, AreInTheMessageOfAnUnhandledException) {
    testing::internal::CaptureStderr();
    io_context ctx(coil_test::with([](auto& o) { o.name = "front"; }));
    ctx.co_spawn(fails(), "detached");
    static_cast<void>(ctx.spawn(fails(), "dropped"));
    ctx.co_spawn([]() -> task<> {
        supervisor all;
        static_cast<void>(all.spawn(fails(), "supervised"));
        co_await all.join();
    }());
    ctx.run();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(coil_test::count_of(said, "dump_test.cpp:"), 3U)
        << "where they were spawned: " << said;
    for (const char* name : {"detached", "dropped", "supervised"}) {
        EXPECT_NE(said.find("front: task '" + std::string(name) + "': an unhandled exception"),
                  std::string::npos)
            << said;
    }
}

TEST(TaskNames, DoNotChangeWhatATaskDoes) {
    int destroyed = 0;
    const auto holds = [](coil_test::on_destruction) -> task<> { co_await sleep_for(1h); };
    {
        io_context ctx;
        auto one = ctx.spawn(gives_one(), "one");
        ctx.co_spawn(holds(coil_test::on_destruction(destroyed)), "destroyed");
        auto other = ctx.spawn(holds(coil_test::on_destruction(destroyed)), "destroyed, too");
        ctx.co_spawn([](io_context& here) -> task<> {
            co_await sleep_for(1ms);
            here.stop();
        }(ctx));
        ctx.run();
        EXPECT_EQ(one.get(), 1);
        EXPECT_THROW(other.get(), std::system_error);
    }
    EXPECT_EQ(destroyed, 2);
}

} // namespace
