// Child processes: streams, redirections, how they end, cancellation.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include <sys/wait.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Process : public ::testing::Test {
protected:
    ~Process() override {
        int status = 0;
        EXPECT_EQ(::waitpid(-1, &status, WNOHANG), -1) << "a child was not reaped";
        EXPECT_EQ(errno, ECHILD);
        EXPECT_EQ(coil_test::open_descriptors(), before_);
    }

private:
    const std::set<int> before_ = coil_test::open_descriptors();
};

task<process_output> run_shell(std::string script, process_options options = {}) {
    process p = process::spawn({"sh", "-c", std::move(script)}, options);
    co_return co_await p.output();
}

TEST_F(Process, ReportsHowItEnded) {
    EXPECT_TRUE(coil::run(run_shell("exit 0")).status.success());
    EXPECT_EQ(coil::run(run_shell("exit 7")).status, exit_status::of_exit(7));
    const exit_status killed = coil::run(run_shell("kill -9 $$")).status;
    EXPECT_TRUE(killed.signaled());
    EXPECT_FALSE(killed.success());
    EXPECT_EQ(killed.signal(), SIGKILL);
    EXPECT_EQ(killed.code(), 137);
    EXPECT_EQ(killed.to_string(), "killed by signal 9 (Killed)");
    EXPECT_EQ(exit_status::of_exit(1).to_string(), "exit code 1");
}

TEST_F(Process, StreamsAreByteStreams) {
    auto main = []() -> task<> {
        process p = process::spawn({"cat"});
        EXPECT_EQ(co_await write_all(p.stdin(), "one\ntwo\n"), 8);
        buffered_reader r{p.stdout()};
        EXPECT_EQ((co_await r.read_until('\n')).value(), "one");
        EXPECT_EQ((co_await r.read_until('\n')).value(), "two");
        EXPECT_EQ(co_await p.stdin().shutdown_write(), 0);
        EXPECT_FALSE((co_await r.read_until('\n')).has_value());
        EXPECT_TRUE((co_await p.wait()).success());
        EXPECT_TRUE((co_await p.wait()).success()); // again
        EXPECT_EQ(p.kill(SIGTERM), -ESRCH);
    };
    coil::run(main());
}

TEST_F(Process, WaitClosesItsInput) {
    auto main = []() -> task<> {
        process p = process::spawn({"cat"});
        EXPECT_TRUE((co_await p.wait()).success());
    };
    coil::run(main());
}

TEST_F(Process, OutputAndErrorsAreSeparate) {
    const process_output got = coil::run(run_shell("echo out; echo err >&2"));
    EXPECT_EQ(got.out, "out\n");
    EXPECT_EQ(got.err, "err\n");
    process_options together;
    together.standard_error = redirect::to_stdout();
    const process_output both = coil::run(run_shell("echo out; echo err >&2", together));
    EXPECT_EQ(both.out, "out\nerr\n");
    EXPECT_EQ(both.err, "");
}

TEST_F(Process, MuchOutputOnBothStreams) {
    const process_output got = coil::run(run_shell(
        "i=0; while [ $i -lt 2000 ]; do printf %0100d $i; printf %0100d $i >&2; i=$((i+1)); done"));
    EXPECT_EQ(got.out.size(), 200'000U);
    EXPECT_EQ(got.err, got.out);
}

TEST_F(Process, OutputBeyondTheLimitEndsIt) {
    auto main = []() -> task<> {
        process p = process::spawn({"sh", "-c", "while :; do echo x; done"});
        bool is_too_much = false;
        try {
            co_await p.output(1000);
        } catch (const std::system_error& e) {
            is_too_much = e.code() == std::errc::message_size;
        }
        EXPECT_TRUE(is_too_much);
        EXPECT_TRUE((co_await p.wait()).signaled());
    };
    coil::run(main());
}

TEST_F(Process, EnvironmentAndDirectory) {
    process_options options;
    options.environment = {"A=1", "PATH=/usr/bin:/bin"};
    options.directory = "/tmp";
    EXPECT_EQ(coil::run(run_shell("echo $A$HOME; pwd", options)).out, "1\n/tmp\n");
}

TEST_F(Process, FilesNullAndDescriptors) {
    char name[] = "/tmp/coil-process-XXXXXX";
    const std::filesystem::path directory = ::mkdtemp(name);
    std::ofstream(directory / "in") << "input";
    process_options options;
    options.standard_input = redirect::file(directory / "in");
    options.standard_output = redirect::file(directory / "out");
    options.standard_error = redirect::null();
    EXPECT_TRUE(coil::run(run_shell("cat; echo lost >&2", options)).status.success());
    std::stringstream out;
    out << std::ifstream(directory / "out").rdbuf();
    EXPECT_EQ(out.str(), "input");
    {
        const coil_test::pipe_pair pipe;
        options.standard_output = redirect::descriptor(pipe.out);
        EXPECT_TRUE(coil::run(run_shell("echo hi", options)).status.success());
        char buf[8];
        EXPECT_EQ(::read(pipe.in, buf, sizeof buf), 3);
        EXPECT_TRUE(coil_test::is_open(pipe.out)); // the caller still owns it
    }
    options.standard_input = redirect::file(directory / "nothing");
    try {
        coil::run(run_shell("cat", options));
        ADD_FAILURE() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
        EXPECT_NE(std::string(e.what()).find("nothing"), std::string::npos) << e.what();
    }
    std::filesystem::remove_all(directory);
}

TEST_F(Process, AFailedStartThrowsAnErrorThatNamesTheProgram) {
    try {
        const process p = process::spawn({"no-such-program-anywhere"});
        ADD_FAILURE() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
        EXPECT_NE(std::string(e.what()).find("\"no-such-program-anywhere\""), std::string::npos);
    }
    EXPECT_THROW(process::spawn({}), std::system_error);
    EXPECT_THROW(process::spawn({"true", std::string("a\0b", 3)}), std::system_error);
    process_options options;
    options.directory = "/no/such/directory";
    EXPECT_THROW(process::spawn({"true"}, options), std::system_error);
}

TEST_F(Process, TheChildHasCleanSignalsAndNoDescriptorsOfItsParent) {
    ::sigset_t some;
    ::sigset_t before;
    ::sigemptyset(&some);
    ::sigaddset(&some, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &some, &before);
    const coil_test::pipe_pair mine;
    const process_output got =
        coil::run(run_shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; test -e /proc/self/fd/" +
                            std::to_string(mine.in) + " && echo inherited"));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(got.out.find("inherited"), std::string::npos);
    EXPECT_NE(got.out.find("SigBlk:\t0000000000000000\n"), std::string::npos) << got.out;
    const std::size_t ignored = got.out.find("SigIgn:");
    ASSERT_NE(ignored, std::string::npos);
    const auto mask = std::stoull(got.out.substr(ignored + 7), nullptr, 16);
    EXPECT_EQ(mask & 0x7fffffff, 0U); // only the 31 standard signals are compared
}

TEST_F(Process, WritingToAChildThatDoesNotReadRaisesNoSIGPIPE) {
    auto main = []() -> task<> {
        process p = process::spawn({"true"});
        const std::string text(1 << 20, 'x');
        EXPECT_EQ(co_await write_all(p.stdin(), text), -EPIPE);
        EXPECT_TRUE((co_await p.wait()).success());
    };
    coil::run(main());
}

TEST_F(Process, Kill) {
    auto main = []() -> task<> {
        process p = process::spawn({"sleep", "1000"});
        EXPECT_GT(p.pid(), 0);
        EXPECT_EQ(p.kill(SIGTERM), 0);
        EXPECT_EQ((co_await p.wait()).signal(), SIGTERM);
    };
    coil::run(main());
}

/// Waits until the shell prints "ready", which it does after it has set its trap.
task<> wait_until_ready(process& p) {
    char buf[6];
    EXPECT_EQ(co_await p.stdout().read_some(buf), 6);
}

TEST_F(Process, TerminateKillsAProcessThatIgnoresSIGTERM) {
    auto main = []() -> task<> {
        process_options options;
        options.new_process_group = true; // so that its sleep is killed, too
        process p = process::spawn({"sh", "-c", "trap '' TERM; echo ready; sleep 1000"}, options);
        co_await wait_until_ready(p);
        EXPECT_EQ((co_await p.terminate(10ms)).signal(), SIGKILL);
        EXPECT_EQ(co_await p.stdout().read_some(mutable_buffer()), 0);
        char c;
        EXPECT_EQ((co_await p.stdout().read_some({&c, 1})), 0); // no process of the group is left
    };
    coil::run(main());
}

TEST_F(Process, G3_ACancelledWaitEndsTheProcess) {
    auto main = []() -> task<> {
        process_options options;
        options.new_process_group = true;
        process p = process::spawn({"sleep", "1000"}, options);
        auto wait = [](process& child) -> task<bool> {
            try {
                co_await child.wait();
            } catch (const std::system_error& e) {
                co_return e.code() == std::errc::operation_canceled;
            }
            co_return false;
        };
        auto handle = coil::spawn(wait(p));
        co_await sleep_for(1ms);
        handle.cancel();
        EXPECT_TRUE(co_await handle);
        EXPECT_EQ((co_await p.wait()).signal(), SIGTERM);
    };
    coil::run(main());
}

TEST_F(Process, G3_ACancelledWaitKillsAfterTheGrace) {
    auto main = []() -> task<> {
        process_options options;
        options.new_process_group = true;
        options.grace = 5ms;
        process p = process::spawn({"sh", "-c", "trap '' TERM; echo ready; sleep 1000"}, options);
        co_await wait_until_ready(p);
        auto wait = [](process& child) -> task<> { co_await child.wait(); };
        auto handle = coil::spawn(wait(p));
        co_await yield();
        handle.cancel();
        bool is_cancelled = false;
        try {
            co_await handle;
        } catch (const std::system_error& e) {
            is_cancelled = e.code() == std::errc::operation_canceled;
        }
        EXPECT_TRUE(is_cancelled);
        EXPECT_EQ((co_await p.wait()).signal(), SIGKILL);
    };
    coil::run(main());
}

TEST_F(Process, AWaitForAnEndedProcessIsNotCancelled) {
    auto main = []() -> task<> {
        process p = process::spawn({"true"});
        char c;
        EXPECT_EQ((co_await p.stdout().read_some({&c, 1})), 0);
        EXPECT_GE(co_await io::poll(p.native_handle(), POLLIN), 0);
        auto wait = [](process& child) -> task<exit_status> { co_return co_await child.wait(); };
        auto handle = coil::spawn(wait(p));
        handle.cancel();
        EXPECT_TRUE((co_await handle).success());
    };
    coil::run(main());
}

TEST_F(Process, G5_ADestroyedProcessIsKilledAndReaped) {
    ::pid_t pid = -1;
    {
        process p = process::spawn({"sleep", "1000"});
        pid = p.pid();
        process q = std::move(p);
        EXPECT_EQ(::kill(pid, 0), 0);
    }
    EXPECT_EQ(::kill(pid, 0), -1);
    EXPECT_EQ(errno, ESRCH);
}

TEST_F(Process, ManyAtOnce) {
    auto main = []() -> task<> {
        scope all;
        int done = 0;
        auto one = [](int code, int& count) -> task<> {
            const process_output got = co_await run_shell("exit " + std::to_string(code));
            EXPECT_EQ(got.status.code(), code);
            ++count;
        };
        for (int i = 0; i < 20; ++i) {
            all.spawn(one(i, done));
        }
        co_await all.join();
        EXPECT_EQ(done, 20);
    };
    coil::run(main());
}

} // namespace
