// waitid: effects and results are those of the system call.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <csignal>
#include <cstring>
#include <memory>

#include <sys/wait.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::contains;
using coil_test::door_backend;
using coil_test::manual;
using coil_test::sqe;
using io_test::outcome;

namespace {

/// A child that exits with `status` on request.
class child {
public:
    explicit child(int status) {
        const coil_test::pipe_pair p;
        id_ = ::fork();
        if (id_ < 0) {
            coil_test::fail_with_errno("fork");
        }
        if (id_ == 0) {
            char c = 0;
            ::close(p.out);
            while (::read(p.in, &c, 1) > 0) {
            }
            ::_exit(status);
        }
        alive_ = coil_test::descriptor{::dup(p.out)};
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() {
        end();
        ::waitpid(id_, nullptr, 0); // fails if the test has already reaped it
    }

    void end() { alive_.reset(); }
    /// Ends the child, and returns when the child can be waited for.
    void end_and_watch() {
        end();
        ::siginfo_t info{};
        EXPECT_EQ(::waitid(P_PID, id(), &info, WEXITED | WNOWAIT), 0);
    }
    [[nodiscard]] ::id_t id() const { return static_cast<::id_t>(id_); }

private:
    pid_t id_;
    coil_test::descriptor alive_;
};

bool is_filled_with(const ::siginfo_t& info, char byte) {
    ::siginfo_t filled;
    std::memset(&filled, byte, sizeof filled);
    return std::memcmp(&info, &filled, sizeof filled) == 0;
}

class Waitid : public io_test::Calls {
protected:
    void SetUp() override { need(uring::opcode::waitid, "waitid"); }
};

TEST_F(Waitid, ReapsAChildThatHasEnded) {
    child c(42);
    c.end_and_watch();
    ::siginfo_t info{};
    EXPECT_EQ(result_of(io::waitid(P_PID, c.id(), &info, WEXITED)), 0);
    EXPECT_EQ(info.si_signo, SIGCHLD);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    EXPECT_EQ(info.si_status, 42);
    EXPECT_EQ(static_cast<::id_t>(info.si_pid), c.id());
    EXPECT_EQ(result_of(io::waitid(P_PID, c.id(), &info, WEXITED)), -ECHILD);
}

TEST_F(Waitid, WaitsUntilTheChildEnds) {
    child c(7);
    auto waits = [](::id_t id, ::siginfo_t& info) -> task<int> {
        co_return co_await io::waitid(P_PID, id, &info, WEXITED);
    };
    auto main = [](auto f, child& it) -> task<> {
        ::siginfo_t info{};
        auto h = coil::spawn(f(it.id(), info));
        co_await sleep_for(2ms);
        EXPECT_FALSE(h.done());
        it.end();
        EXPECT_EQ(co_await h, 0);
        EXPECT_EQ(info.si_status, 7);
    };
    coil::run(main(waits, c));
}

TEST_F(Waitid, StopsAndContinuations) {
    child c(0);
    ::siginfo_t info{};
    ASSERT_EQ(::kill(static_cast<pid_t>(c.id()), SIGSTOP), 0);
    EXPECT_EQ(result_of(io::waitid(P_PID, c.id(), &info, WSTOPPED)), 0);
    EXPECT_EQ(info.si_code, CLD_STOPPED);
    ASSERT_EQ(::kill(static_cast<pid_t>(c.id()), SIGCONT), 0);
    EXPECT_EQ(result_of(io::waitid(P_PID, c.id(), &info, WCONTINUED)), 0);
    EXPECT_EQ(info.si_code, CLD_CONTINUED);
}

TEST_F(Waitid, ReturnsWhatTheSystemCallReturns) {
    child c(0);
    struct arguments {
        ::idtype_t type;
        ::id_t id;
        int options;
    };
    for (const auto& a : {arguments{P_PID, c.id(), WEXITED | WNOHANG}, // still running
                          arguments{P_ALL, 0, WEXITED | WNOHANG},
                          arguments{P_PID, 1, WEXITED}, // not a child of this process
                          arguments{P_PID, 0, WEXITED}, arguments{P_ALL, 0, 0},
                          arguments{P_ALL, 0, ~0}, arguments{P_PGID, 999999, WEXITED}}) {
        ::siginfo_t ours;
        ::siginfo_t theirs;
        std::memset(&ours, 0x55, sizeof ours);
        std::memset(&theirs, 0x55, sizeof theirs);
        const int expected = outcome(::waitid(a.type, a.id, &theirs, a.options));
        EXPECT_EQ(result_of(io::waitid(a.type, a.id, &ours, a.options)), expected)
            << a.type << ' ' << a.id << ' ' << a.options;
        if (expected == 0) {
            EXPECT_EQ(ours.si_pid, theirs.si_pid);
            EXPECT_EQ(ours.si_signo, theirs.si_signo);
        }
    }
    c.end_and_watch();
    EXPECT_EQ(result_of(io::waitid(P_PID, c.id(), nullptr, WEXITED | WNOWAIT)), 0);
    EXPECT_EQ(result_of(io::waitid(P_PID, c.id(), nullptr, WEXITED)), 0);
}

TEST_F(Waitid, G3_CancelledTheChildIsStillThereToBeWaitedFor) {
    child c(9);
    auto waits = [](::id_t id) -> task<int> {
        ::siginfo_t info{};
        co_return co_await io::waitid(P_PID, id, &info, WEXITED);
    };
    auto main = [](auto f, child& it) -> task<> {
        auto h = coil::spawn(f(it.id()));
        co_await sleep_for(1ms);
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
        ::siginfo_t info{};
        EXPECT_EQ(co_await timeout(io::waitid(P_PID, it.id(), &info, WEXITED), 1ms), -ETIMEDOUT);
    };
    coil::run(main(waits, c));
    c.end();
    int status = 0;
    EXPECT_EQ(::waitpid(static_cast<pid_t>(c.id()), &status, 0), static_cast<pid_t>(c.id()));
    EXPECT_EQ(WEXITSTATUS(status), 9);
}

TEST_F(Waitid, G3_AChildThatEndsBeforeTheRequestToCancelIsReported) {
    child c(5);
    int ended = 0;
    auto guard = std::make_shared<door_backend::guard>();
    guard->before_enter = [&](door_backend& k, const std::vector<sqe>& entries, unsigned) {
        if (ended == 0 && contains(entries, uring::opcode::async_cancel)) {
            ++ended;
            c.end_and_watch();
            k.post_completions();
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto waits = [](::id_t id, ::siginfo_t& info) -> task<int> {
        co_return co_await io::waitid(P_PID, id, &info, WEXITED);
    };
    auto main = [](auto f, child& it) -> task<> {
        ::siginfo_t info{};
        auto h = coil::spawn(f(it.id(), info));
        co_await sleep_for(1ms);
        h.cancel();
        EXPECT_EQ(co_await h, 0);
        EXPECT_EQ(info.si_status, 5);
    };
    coil_test::run_on(ctx, main(waits, c));
    EXPECT_EQ(ended, 1); // the race was forced
}

TEST_F(Waitid, G2_DestroyedWhileItWaits_NothingIsWrittenAfterwards) {
    auto waits = [](::id_t id, ::siginfo_t& info) -> manual {
        co_await io::waitid(P_PID, id, &info, WEXITED);
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f) -> task<> {
        for (int turns = 0; turns < 4; ++turns) {
            child c(3);
            ::siginfo_t info{};
            manual victim = f(c.id(), info);
            victim.start();
            for (int i = 0; i < turns; ++i) {
                co_await io::nop();
            }
            victim.destroy();
            std::memset(&info, 0x5a, sizeof info); // the caller's memory may be reused
            c.end_and_watch();
            co_await sleep_for(1ms);
            EXPECT_TRUE(is_filled_with(info, 0x5a)) << turns;
            // The destroyed call has not reaped it.
            EXPECT_EQ(::waitpid(static_cast<pid_t>(c.id()), nullptr, 0),
                      static_cast<pid_t>(c.id()));
        }
    };
    coil::run(main(waits));
}

TEST_F(Waitid, WithoutTheOpcodeOnlyCallsThatDoNotWaitAreSupported) {
    auto guard = std::make_shared<door_backend::guard>();
    guard->hidden = {uring::opcode::waitid};
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    child c(11);
    auto main = [](child& it) -> task<> {
        ::siginfo_t info;
        std::memset(&info, 0x55, sizeof info);
        EXPECT_EQ(co_await io::waitid(P_PID, it.id(), &info, WEXITED | WNOHANG), 0);
        EXPECT_EQ(info.si_pid, 0);
        EXPECT_EQ(co_await io::waitid(P_PID, it.id(), &info, WEXITED), -EOPNOTSUPP);
        it.end_and_watch();
        EXPECT_EQ(co_await io::waitid(P_PID, it.id(), &info, WEXITED | WNOHANG), 0);
        EXPECT_EQ(info.si_status, 11);
        EXPECT_EQ(co_await io::waitid(P_PID, it.id(), &info, WEXITED | WNOHANG), -ECHILD);
    };
    coil_test::run_on(ctx, main(c));
}

} // namespace
