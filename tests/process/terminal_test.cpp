// Child processes on a pseudoterminal, the size of windows, raw mode.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Terminal : public ::testing::Test {
protected:
    ~Terminal() override {
        int status = 0;
        EXPECT_EQ(::waitpid(-1, &status, WNOHANG), -1) << "a child was not reaped";
        EXPECT_EQ(coil_test::open_descriptors(), before_);
    }

private:
    const std::set<int> before_ = coil_test::open_descriptors();
};

process on_terminal(std::string script, window_size window = {}) {
    const redirect tty = redirect::terminal();
    process_options options{tty, tty, tty};
    options.window = window;
    return process::spawn({"sh", "-c", std::move(script)}, options);
}

task<process_output> output_of(std::string script, window_size window = {}) {
    process p = on_terminal(std::move(script), window);
    co_return co_await p.output();
}

TEST_F(Terminal, AllStreamsAreOneTerminalWhichControlsTheSession) {
    const process_output got = run(output_of(
        "test -t 0 && test -t 1 && test -t 2 && echo all; test \"$(tty)\" && tty >/dev/tty; "
        "ps -o sid= -p $$ | grep -q \"^ *$$\\$\" && echo leader; echo error >&2; exit 3"));
    EXPECT_EQ(got.status, exit_status::of_exit(3));
    EXPECT_TRUE(got.out.starts_with("all\r\n/dev/pts/")) << got.out;
    EXPECT_TRUE(got.out.ends_with("leader\r\nerror\r\n")) << got.out;
    EXPECT_EQ(got.err, "");
}

TEST_F(Terminal, TheSizeOfTheWindow) {
    EXPECT_EQ(run(output_of("stty size")).out, "24 80\r\n");
    EXPECT_EQ(run(output_of("stty size", {132, 43})).out, "43 132\r\n");
    run([]() -> task<> {
        process p =
            on_terminal("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done");
        buffered_reader r{p.terminal()};
        EXPECT_EQ(co_await r.read_until('\n'), "ready\r");
        EXPECT_EQ(terminal_size(p.terminal().native_handle()), (window_size{80, 24}));
        EXPECT_EQ(p.terminal().resize({100, 50}), 0);
        EXPECT_EQ(co_await r.read_until('\n'), "50 100\r");
        EXPECT_EQ(terminal_size(p.terminal().native_handle()), (window_size{100, 50}));
        EXPECT_TRUE((co_await p.wait()).success());
    }());
    auto [in, out] = make_pipe();
    EXPECT_EQ(terminal_size(in.native_handle()), std::nullopt);
    EXPECT_EQ(terminal_size(-1), std::nullopt);
}

TEST_F(Terminal, InputIsEchoedAndEndsWithShutdownWrite) {
    run([]() -> task<> {
        process p = on_terminal("cat; echo end");
        EXPECT_EQ(co_await write_all(p.terminal(), "hello\n"), 6);
        buffered_reader r{p.terminal()};
        EXPECT_EQ(co_await r.read_until('\n'), "hello\r") << "the echo";
        EXPECT_EQ(co_await r.read_until('\n'), "hello\r");
        EXPECT_EQ(co_await p.terminal().shutdown_write(), 0);
        EXPECT_EQ(co_await r.read_until('\n'), "end\r");
        EXPECT_EQ(co_await r.read_until('\n'), std::nullopt) << "the end must not be an error";
        EXPECT_TRUE((co_await p.wait()).success());
        char buf[4];
        EXPECT_EQ((co_await p.terminal().read_some(buf)), 0) << "again";
    }());
}

TEST_F(Terminal, ShutdownWriteNeedsACharacterForTheEnd) {
    run([]() -> task<> {
        process p = on_terminal("stty eof undef; echo ready; cat");
        buffered_reader r{p.terminal()};
        EXPECT_EQ(co_await r.read_until('\n'), "ready\r");
        EXPECT_EQ(co_await p.terminal().shutdown_write(), -EOPNOTSUPP);
        EXPECT_EQ((co_await p.terminate(1s)).signal(), SIGHUP);
    }());
}

// A client that ends after the shell is no error of a proxy between the two.
TEST_F(Terminal, InputThatEndsAfterTheProgramIsNoError) {
    run([]() -> task<> {
        process p = on_terminal("echo bye");
        auto [client, front] = net::socket::pair();
        auto proxy = spawn(duplex(p.terminal(), front));
        std::string got(100, '\0');
        const int n = co_await client.recv_all(got); // until the end
        EXPECT_EQ(got.substr(0, static_cast<std::size_t>(n)), "bye\r\n");
        EXPECT_TRUE((co_await p.wait()).success());
        EXPECT_EQ(co_await client.shutdown_write(), 0);
        const duplex_counts counts = co_await proxy;
        EXPECT_EQ(counts.a_to_b, 5U);
        EXPECT_EQ(counts.b_to_a, 0U);
    }());
}

TEST_F(Terminal, AProgramThatDoesNotExistLeavesNothing) {
    const redirect tty = redirect::terminal();
    EXPECT_THROW((void)process::spawn({"/nowhere/program"}, {tty, tty, tty}), std::system_error);
    process_options elsewhere{tty, tty, tty};
    elsewhere.directory = "/nowhere";
    EXPECT_THROW((void)process::spawn({"true"}, elsewhere), std::system_error);
}

TEST_F(Terminal, ControlCIsASignal) {
    run([]() -> task<> {
        process p = on_terminal("echo ready; exec sleep 1000");
        buffered_reader r{p.terminal()};
        EXPECT_EQ(co_await r.read_until('\n'), "ready\r");
        EXPECT_EQ(co_await write_all(p.terminal(), "\3"), 1);
        EXPECT_EQ((co_await p.wait()).signal(), SIGINT);
    }());
}

TEST_F(Terminal, OnlySomeStreams) {
    run([]() -> task<> {
        process_options options;
        options.standard_error = redirect::terminal();
        process p =
            process::spawn({"sh", "-c", "test -t 2 && ! test -t 1 && cat && echo x >&2"}, options);
        EXPECT_EQ(co_await write_all(p.stdin(), "to a pipe"), 9);
        const process_output got = co_await p.output();
        EXPECT_EQ(got.out, "to a pipe");
        EXPECT_TRUE(got.status.success());
        char buf[16];
        EXPECT_EQ((co_await p.terminal().read_some(buf)), 3);
        EXPECT_EQ((co_await p.terminal().read_some(buf)), 0);
    }());
}

TEST_F(Terminal, AProcessHasNoneByDefault) {
    run([]() -> task<> {
        process p = process::spawn({"true"});
        char buf[4];
        EXPECT_FALSE(p.terminal());
        EXPECT_EQ((co_await p.terminal().read_some(buf)), -EBADF);
        EXPECT_EQ(co_await p.terminal().write_some("x"), -EBADF);
        EXPECT_EQ(co_await p.terminal().shutdown_write(), -EBADF);
        EXPECT_EQ(p.terminal().resize({}), -EBADF);
        EXPECT_TRUE((co_await p.wait()).success());
    }());
}

// An interactive shell ignores SIGTERM and obeys SIGHUP.
TEST_F(Terminal, G3_ACancelledWaitHangsUp) {
    run([]() -> task<> {
        process p = on_terminal("trap '' TERM; echo ready; while :; do sleep 0.01; done");
        buffered_reader r{p.terminal()};
        EXPECT_EQ(co_await r.read_until('\n'), "ready\r");
        auto waiting = spawn(p.wait());
        co_await yield();
        waiting.cancel();
        try {
            co_await waiting;
            ADD_FAILURE() << "not cancelled";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
        }
        EXPECT_EQ((co_await p.wait()).signal(), SIGHUP);
    }());
}

TEST_F(Terminal, TheDestructorHangsUpAndKills) {
    const process p = on_terminal("trap '' HUP; while :; do sleep 0.01; done");
}

TEST_F(Terminal, G3_AReadIsCancelled) {
    run([]() -> task<> {
        process p = on_terminal("exec sleep 1000");
        char buf[16];
        EXPECT_EQ(co_await timeout(p.terminal().read_some(buf), 10ms), -ETIMEDOUT);
    }());
}

TEST_F(Terminal, RawModeIsRestored) {
    run([]() -> task<> {
        const coil_test::descriptor ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
        EXPECT_EQ(::grantpt(ours), 0);
        EXPECT_EQ(::unlockpt(ours), 0);
        char path[100];
        EXPECT_EQ(::ptsname_r(ours, path, sizeof path), 0);
        pipe_end theirs(::open(path, O_RDWR | O_NOCTTY | O_CLOEXEC));
        pseudoterminal keyboard(::dup(ours));
        ::termios before{};
        EXPECT_EQ(::tcgetattr(theirs.native_handle(), &before), 0);
        {
            raw_mode raw(theirs.native_handle());
            const raw_mode moved = std::move(raw);
            EXPECT_EQ(raw.restore(), 0) << "must restore nothing"; // NOLINT(*-use-after-move)
            EXPECT_EQ(co_await write_all(keyboard, "\3a"), 2);
            char buf[8];
            EXPECT_EQ((co_await theirs.read_some({buf, 1})), 1) << "must not wait for a newline";
            EXPECT_EQ(buf[0], '\3');
            EXPECT_EQ(co_await keyboard.shutdown_write(), -EOPNOTSUPP);
            EXPECT_EQ(co_await write_all(theirs, "\n"), 1);
            EXPECT_EQ((co_await keyboard.read_some(buf)), 1) << "neither an echo nor a \\r";
        }
        ::termios after{};
        EXPECT_EQ(::tcgetattr(theirs.native_handle(), &after), 0);
        EXPECT_EQ(after.c_lflag, before.c_lflag);
        EXPECT_EQ(after.c_oflag, before.c_oflag);
    }());
    auto [in, out] = make_pipe();
    EXPECT_THROW(raw_mode{in.native_handle()}, std::system_error);
}

} // namespace
