// Traces: what is recorded, the format of the file, and spans.

#include "../../src/context/trace_ring.hpp"
#include "support.hpp"
#include "support/fault_backend.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
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

/// A file that is removed at the end.
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

/// Checks the format with Python's JSON parser. Returns the script's output: "ok" and counts.
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

/// The kernel refuses entries, which are submitted again.
TEST(TraceOfRefusedEntries, HasEachSubmissionOnce) {
    constexpr unsigned operations = 200;
    io_context_options options;
    coil_test::fault_plan plan;
    plan.busy_enter = 700;
    const auto log = std::make_shared<coil_test::fault_log>();
    options.make_backend = coil_test::fault_backend::factory(1, plan, log);
    io_context ctx(std::move(options));
    ctx.co_spawn([]() -> task<> {
        for (unsigned i = 0; i < operations; ++i) {
            EXPECT_EQ(co_await io::nop(), 0);
        }
    }());
    std::map<std::uint64_t, unsigned> submitted; // by opcode
    std::thread([&] {
        trace::start();
        ctx.run();
        trace::stop();
        for (const auto& ring : detail::all_trace_rings().rings) {
            for (const detail::trace_event& event : ring->copy()) {
                if (event.kind == detail::trace_kind::submission) {
                    ++submitted[event.detail & 0xff];
                }
            }
        }
    }).join();
    EXPECT_GE(ctx.metrics().refusals, 10U) << "the backend has refused nothing";
    EXPECT_EQ(submitted[static_cast<std::uint8_t>(uring::opcode::nop)], operations);
}

task<> named() { co_return; }

/// With very many names, each event keeps the name of its task as long as there is room. Events
/// without room for a name are counted, and the next trace has room again.
TEST(NamesOfATrace, AreKeptWhileThereIsRoomAndCountedAfterwards) {
    const auto trace_of = [](std::size_t tasks, const std::string& prefix) {
        std::string text;
        std::thread([&] {
            trace::start(1U << 20U);
            io_context ctx;
            for (std::size_t i = 0; i < tasks; ++i) {
                ctx.co_spawn(named(), prefix + std::to_string(i));
                if (i % 1000 == 999) {
                    ctx.run();
                }
            }
            ctx.co_spawn(named(), "the last");
            ctx.run();
            trace::stop();
            text = trace::to_json();
        }).join();
        return text;
    };
    std::string text = trace_of(6000, "connection ");
    EXPECT_EQ(count_of(text, "\"spawn connection "), 6000U);
    EXPECT_EQ(count_of(text, "\"spawn connection 5999\""), 1U);
    EXPECT_EQ(count_of(text, "\"spawn the last\""), 1U);
    EXPECT_EQ(count_of(text, "\"events without their names\":0}"), 1U);

    const std::string long_name(4000, 'x');
    text = trace_of(3000, long_name);
    EXPECT_EQ(count_of(text, "\"events without their names\":0}"), 0U) << "16 MiB are not enough";
    text.clear();

    text = trace_of(10, "again ");
    EXPECT_EQ(count_of(text, "\"spawn again "), 10U);
    EXPECT_EQ(count_of(text, "\"events without their names\":0}"), 1U);
}

/// Traces are written while other threads record, and while tracing starts and stops.
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

/// Spans pass on the flag of their parent, even in the trace, which contains all spans.
TEST(Spans, AreInTheTraceWithTheFlagOfTheirParent) {
    temporary_file file;
    trace::start();
    std::vector<std::string> ids;
    for (const char* flags : {"00", "01"}) {
        const std::string parent =
            std::string("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-") + flags;
        const trace_span span = this_task::span("flagged", trace_context::parse(parent));
        ids.push_back("\"id\":\"" + span.context().to_string() + "\",\"parent\":\"" + parent +
                      "\"");
    }
    trace::stop();
    trace::write(file.path());
    EXPECT_EQ(count_of(check_json(file.path()), "ok: "), 1U);
    for (const std::string& id : ids) {
        EXPECT_EQ(count_of(file.text(), id), 1U) << id;
    }
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
