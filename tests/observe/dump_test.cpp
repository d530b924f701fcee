// dump_tasks(): every task, and what it waits for.

#include "support.hpp"
#include "support/descriptors.hpp"

#include <optional>
#include <sstream>
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

task<> asks(io_context& ctx, std::string& text) {
    co_await sleep_for(1ms);
    text = ctx.dump_tasks();
    ctx.stop();
}

} // namespace observed

namespace {

using coil_test::count_of;
using observed::each;

struct connection {
    connection() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
    ~connection() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    int ends[2]{};
};

std::string dump_of(io_context& ctx) {
    std::string text;
    ctx.co_spawn(observed::asks(ctx, text));
    ctx.run();
    return text;
}

std::string hex(const void* p) {
    std::ostringstream text;
    text << p;
    return text.str();
}

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
    EXPECT_EQ(count_of(text, ": recv " + fd + "\n"), 3U * each) << text;
    EXPECT_EQ(count_of(text, " 'limited' spawned at "), 1U * each) << text;
    EXPECT_EQ(count_of(text, " s left, limit in "), 1U * each) << text;
    EXPECT_EQ(count_of(text, ": mutex at " + hex(&m)), 1U * each) << text;
    EXPECT_EQ(count_of(text, ": channel::recv at 0x"), 1U * each) << text;
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
task<> joins_a_scope(int fd) {
    scope all;
    all.spawn(observed::receives(fd), "scoped");
    co_await all.join();
}

TEST(DumpTasks, ShowsTheChildrenOfScopesAndSupervisors) {
    const connection quiet;
    io_context ctx;
    ctx.co_spawn(serves_two(quiet.ends[0]));
    ctx.co_spawn(joins_a_scope(quiet.ends[0]));
    const std::string text = dump_of(ctx);
    EXPECT_EQ(count_of(text, "2 children, 1 more wait to begin\n"), 1U) << text;
    EXPECT_EQ(count_of(text, " 'session': recv fd "), 2U) << text;
    EXPECT_EQ(count_of(text, ": 1 children, joined by 0x"), 1U) << text;
    EXPECT_EQ(count_of(text, " 'scoped': recv fd "), 1U) << text;
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
        EXPECT_EQ(count_of(here.dump_tasks(), "\n  task "), 101U);
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
    EXPECT_TRUE(text.starts_with(
        R"json({"contexts":[{"name":"a \"quoted\" name","answered":true,"count":1,"arriving":0,)json"))
        << text;
    EXPECT_NE(text.find(R"("name":"n","file":")"), std::string::npos) << text;
    EXPECT_NE(text.find(R"("waits_for":"sleep","left_s":3)"), std::string::npos) << text;
    EXPECT_NE(text.find(R"json({"function":"observed::sleeps()","module":")json"),
              std::string::npos)
        << text;
}

// ---- names

task<> fails() {
    co_await sleep_for(1ms);
    throw std::runtime_error("lost cause");
}
task<int> gives_one() { co_return 1; }

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
    EXPECT_EQ(coil_test::count_of(said, "dump_test.cpp:"), 2U)
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
