// Traces: what is recorded, its form, and spans.

#include "support.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::count_of;

/// A file that is removed again.
class temporary_file {
public:
    temporary_file() {
        const int fd = ::mkstemp(path_.data());
        ::close(fd);
    }
    ~temporary_file() { ::unlink(path_.data()); }
    [[nodiscard]] std::string path() const { return path_.data(); }
    [[nodiscard]] std::string text() const {
        std::ifstream in(path());
        return {std::istreambuf_iterator<char>(in), {}};
    }

private:
    std::array<char, 32> path_{"/tmp/coil-trace-XXXXXX"};
};

/// Checks the form by Python's JSON parser: returns what it prints, "ok" and counts.
std::string check_json(const std::string& file) {
    const std::string command = "python3 '" CHECK_TRACE "' '" + file + "' 2>&1";
    std::FILE* const out = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> part{};
    while (const std::size_t n = std::fread(part.data(), 1, part.size(), out)) {
        text.append(part.data(), n);
    }
    ::pclose(out);
    return text;
}

task<> echoes(int fd) {
    std::array<char, 8> bytes{};
    while (co_await io::recv(fd, bytes, 0) > 0) {
        co_await io::send(fd, bytes, 0);
    }
}

task<> asks(int fd, int times) {
    std::array<char, 8> bytes{};
    for (int i = 0; i < times; ++i) {
        co_await io::send(fd, bytes, 0);
        co_await io::recv(fd, bytes, 0);
        co_await sleep_for(100us);
    }
    co_await io::shutdown(fd, SHUT_WR);
}

void make_traffic(io_backend backend) {
    io_context_options options;
    options.backend = backend;
    io_context ctx(std::move(options));
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ctx.co_spawn(echoes(ends[0]), "the \"echo\"");
    ctx.co_spawn(asks(ends[1], 20), "the client");
    ctx.co_spawn([]() -> task<> {
        mutex m;
        co_await when_all(
            [](mutex& lock) -> task<> {
                co_await lock.lock();
                co_await sleep_for(1ms);
                lock.unlock();
            }(m),
            [](mutex& lock) -> task<> {
                co_await yield();
                co_await lock.lock();
                lock.unlock();
            }(m));
    }());
    ctx.run();
    ::close(ends[0]);
    ::close(ends[1]);
}

class Trace : public testing::TestWithParam<io_backend> {
protected:
    ~Trace() override { trace::stop(); }
};

INSTANTIATE_TEST_SUITE_P(Backends, Trace, testing::Values(io_backend::io_uring, io_backend::epoll),
                         [](const auto& given) {
                             return given.param == io_backend::epoll ? "epoll" : "io_uring";
                         });

TEST_P(Trace, ShowsTasksOperationsAndWaits) {
    std::string text;
    temporary_file file;
    std::thread([&] { // with a ring of its own
        trace::start();
        make_traffic(GetParam());
        trace::stop();
        trace::write(file.path());
        text = trace::to_json();
    })
        .join();
    const std::string said = check_json(file.path());
    EXPECT_EQ(count_of(said, "ok: "), 1U) << said;
    EXPECT_EQ(count_of(text, R"("name":"spawn the \"echo\"","ph":"i")"), 1U);
    EXPECT_GE(count_of(text, R"("name":"recv","ph":"b")"), 40U);
    EXPECT_EQ(count_of(text, R"("name":"recv","ph":"b")"),
              count_of(text, R"("name":"recv","ph":"e")"));
    EXPECT_GE(count_of(text, R"("args":{"result":8})"), 80U);
    EXPECT_GE(count_of(text, R"("name":"sleep","ph":"b")"), 20U);
    EXPECT_GE(count_of(text, R"("name":"synchronisation","ph":"b")"), 1U);
    EXPECT_GE(count_of(text, "asks(int, int)"), 20U);
    EXPECT_GE(count_of(text, R"("task":"the client")"), 20U);
}

TEST_P(Trace, IsBounded) {
    std::string text;
    temporary_file file;
    std::thread([&] {
        trace::start(64);
        make_traffic(GetParam());
        trace::stop();
        text = trace::to_json();
        trace::write(file.path());
    }).join();
    EXPECT_EQ(count_of(check_json(file.path()), "ok: "), 1U);
    std::ofstream(file.path()) << text;
    EXPECT_LE(text.size(), 2'000'000U);
    EXPECT_EQ(count_of(check_json(file.path()), "ok: "), 1U);
}

/// Written while other threads record, and while it starts and stops.
TEST_P(Trace, IsWrittenWhileItIsTaken) {
    std::atomic<bool> over = false;
    trace::start(256);
    std::thread writer([&] {
        temporary_file file;
        for (int i = 0; i < coil_test::rounds(5, 200); ++i) {
            trace::write(file.path());
            const std::string said = check_json(file.path());
            EXPECT_EQ(count_of(said, "ok: "), 1U) << said;
            if (i % 2 == 0) {
                trace::stop();
            } else {
                trace::start(256);
            }
        }
        over = true;
    });
    std::thread other([&] {
        while (!over) {
            make_traffic(GetParam());
        }
    });
    while (!over) {
        make_traffic(GetParam());
    }
    other.join();
    writer.join();
}

// ---- spans

class collecting_exporter final : public span_exporter {
public:
    collecting_exporter() { set_span_exporter(this); }
    ~collecting_exporter() override { set_span_exporter(nullptr); }
    void on_end(const finished_span& span) noexcept override {
        const std::scoped_lock lock(mutex_);
        spans.push_back(span);
    }

    std::vector<finished_span> spans;

private:
    std::mutex mutex_;
};

task<> part(trace_context parent, io_context& elsewhere) {
    trace_span span = this_task::span("part", parent);
    co_await sleep_for(2ms);
    co_await resume_on(elsewhere);
    span.set_attribute("rows", "7");
}

TEST(Spans, SurviveAwaitsAndCrossThreads) {
    collecting_exporter exported;
    temporary_file file;
    trace::start();
    {
        runtime rt(2);
        rt.context(0).co_spawn([](runtime& all) -> task<> {
            trace_span whole = this_task::span("whole");
            co_await part(whole.context(), all.context(1));
            trace_span moved = std::move(whole);
            whole.end(); // has no effect: it was moved from
        }(rt));
        rt.run();
    }
    trace::stop();
    trace::write(file.path());
    ASSERT_EQ(exported.spans.size(), 2U);
    const finished_span& inner = exported.spans[0];
    const finished_span& outer = exported.spans[1];
    EXPECT_EQ(inner.name, "part");
    EXPECT_EQ(outer.name, "whole");
    EXPECT_EQ(inner.parent, outer.context.span);
    EXPECT_EQ(outer.parent, 0U);
    EXPECT_EQ(inner.context.trace_high, outer.context.trace_high);
    EXPECT_EQ(inner.context.trace_low, outer.context.trace_low);
    EXPECT_NE(inner.context.span, outer.context.span);
    EXPECT_GE(inner.end - inner.begin, 2ms);
    EXPECT_GE(outer.end, inner.end);
    ASSERT_EQ(inner.attributes.size(), 1U);
    EXPECT_EQ(inner.attributes[0].second, "7");
    EXPECT_EQ(count_of(check_json(file.path()), "ok: "), 1U);
    EXPECT_EQ(count_of(file.text(), "\"id\":\"" + inner.context.to_string() + "\",\"parent\":\"" +
                                        outer.context.to_string() + "\""),
              1U);
}

TEST(Spans, HaveIdsInTheFormOfW3C) {
    const std::string text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const auto parsed = trace_context::parse(text);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->trace_high, 0x0af7651916cd43ddU);
    EXPECT_EQ(parsed->trace_low, 0x8448eb211c80319cU);
    EXPECT_EQ(parsed->span, 0xb7ad6b7169203331U);
    EXPECT_TRUE(parsed->sampled);
    EXPECT_EQ(parsed->to_string(), text);
    const trace_span span = this_task::span("x", parsed);
    EXPECT_EQ(span.context().trace_low, parsed->trace_low);
    EXPECT_EQ(span.context().to_string().substr(0, 36), text.substr(0, 36));
    EXPECT_EQ(trace_context::parse(span.context().to_string()), span.context());
    // A later version may append fields.
    EXPECT_TRUE(trace_context::parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-x"));
    for (const char* wrong : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
                              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
                              "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                              "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                              "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                              "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                              "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                              "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01"}) {
        EXPECT_FALSE(trace_context::parse(wrong)) << wrong;
    }
}

/// Also run by the next test, in a program of its own.
TEST(TraceOfAProcess, HasOneTask) {
    io_context_options options;
    if (const char* const file = std::getenv("TRACE_BY_OPTION")) {
        options.trace_file = file;
    }
    io_context ctx(std::move(options));
    ctx.co_spawn([]() -> task<> { co_await sleep_for(1ms); }(), "traced");
    ctx.run();
}

TEST(TraceOfAProcess, IsWrittenAtExitByOptionAndByEnvironment) {
    for (const std::string by : {"COIL_TRACE", "TRACE_BY_OPTION"}) {
        const temporary_file file;
        const std::string command = by + "=" + file.path() + " /proc/" +
                                    std::to_string(::getpid()) +
                                    "/exe --gtest_filter=TraceOfAProcess.HasOneTask >/dev/null";
        EXPECT_EQ(std::system(command.c_str()), 0);
        EXPECT_EQ(count_of(check_json(file.path()), "ok: "), 1U) << by;
        EXPECT_EQ(count_of(file.text(), "spawn traced"), 1U) << by;
    }
}

// ---- the probes

/// What `readelf -n` reads: tools find the probes in the program's file.
TEST(Probes, AreInTheProgramsNotes) {
    std::FILE* const out = ::popen("readelf -n /proc/$PPID/exe 2>/dev/null", "r");
    std::string text;
    std::array<char, 4096> bytes{};
    while (const std::size_t n = std::fread(bytes.data(), 1, bytes.size(), out)) {
        text.append(bytes.data(), n);
    }
    if (::pclose(out) != 0) {
        GTEST_SKIP() << "needs readelf(1)";
    }
    for (const char* name : {"submit", "complete", "resume"}) {
        EXPECT_EQ(count_of(text, std::string("Name: ") + name + "\n"), 1U) << text;
    }
    EXPECT_EQ(count_of(text, "Provider: coil\n"), 3U) << text;
}

} // namespace
