// coil-top (tools/coil-top) on this program.

#include "admin_support.hpp"

#include <cstdint>
#include <fstream>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>

using namespace coil;
using namespace std::chrono_literals;

namespace watched {

task<> sleeps() { co_await sleep_for(1h); }
task<> session(int fd) {
    char c = 0;
    co_await io::recv(fd, mutable_buffer(&c, 1));
}
task<> waits(mutex& m) {
    co_await m.lock();
    m.unlock();
}

} // namespace watched

namespace {

using coil_test::count_of;
using coil_test::output_of;

/// A connected pair of TCP sockets.
class tcp_pair {
public:
    tcp_pair() {
        const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<::sockaddr*>(&address);
        EXPECT_EQ(::bind(listener, any, size), 0);
        EXPECT_EQ(::listen(listener, 1), 0);
        EXPECT_EQ(::getsockname(listener, any, &size), 0);
        client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::connect(client, any, size), 0);
        server = ::accept(listener, nullptr, nullptr);
        EXPECT_EQ(::getsockname(client, any, &size), 0);
        client_port = ntohs(address.sin_port);
        ::close(listener);
    }
    tcp_pair(const tcp_pair&) = delete;
    tcp_pair& operator=(const tcp_pair&) = delete;
    ~tcp_pair() {
        ::close(client);
        ::close(server);
    }
    int client = -1;
    int server = -1;
    std::uint16_t client_port = 0;
};

class CoilTop : public ::testing::Test {
protected:
    void SetUp() override {
        if (std::system("python3 --version > /dev/null 2>&1") != 0) {
            GTEST_SKIP() << "python3 is not installed";
        }
        ASSERT_TRUE(mutex_.try_lock());
        for (int i = 0; i < 30; ++i) {
            ctx_.co_spawn(watched::sleeps(), "sleeper");
        }
        for (int i = 0; i < 20; ++i) {
            ctx_.co_spawn(watched::waits(mutex_));
        }
        ctx_.co_spawn(watched::session(pair_.server), "session");
        ctx_.start();
        other_.start();
    }

    [[nodiscard]] std::string run(const std::string& arguments) const {
        return output_of("python3 -B " COIL_TOP " " + place_.path() + " " + arguments);
    }

    coil_test::socket_place place_;
    tcp_pair pair_;
    mutex mutex_;
    io_context ctx_{place_.options("main")};
    io_context other_{place_.options("other")};
};

TEST_F(CoilTop, OneScreen) {
    const std::string text = run("--once --delay 0.2");
    EXPECT_EQ(count_of(text, "test_observe (pid " + std::to_string(::getpid())), 1U) << text;
    EXPECT_EQ(count_of(text, "\nmain "), 1U) << text;
    EXPECT_EQ(count_of(text, "\nother "), 1U) << text;
    EXPECT_EQ(count_of(text, "      30 sleep\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "      20 mutex\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "       1 recv\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "      30 sleeper\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "watched::waits\n"), 2U) << text; // by name, and its frames
    if (!coil_test::sanitized) {
        EXPECT_EQ(count_of(text, "unknown watched::waits"), 0U) << text;
    }
}

TEST_F(CoilTop, ConnectionsThatHaveBeenIdleAndTheirPeers) {
    std::this_thread::sleep_for(300ms);
    const std::string text = run("--tasks --idle 0.2");
    EXPECT_EQ(count_of(text, "\n"), 1U) << text;
    EXPECT_EQ(count_of(text, "127.0.0.1:" + std::to_string(pair_.client_port)), 1U) << text;
    EXPECT_EQ(count_of(text, "nothing received for"), 1U) << text;
    EXPECT_EQ(count_of(text, "coil_top_test.cpp"), 1U) << text;
    EXPECT_EQ(run("--tasks --idle 3600"), "");
    EXPECT_EQ(count_of(run("--tasks --filter mutex"), "mutex at 0x"), 20U);
}

TEST_F(CoilTop, AsJson) {
    const std::string text = run("--json --delay 0.1");
    EXPECT_EQ(count_of(text, "\"sleep\": 30"), 1U) << text;
    EXPECT_EQ(count_of(text, "\"load\":"), 2U) << text;
}

TEST_F(CoilTop, NamesCannotControlTheTerminal) {
    ctx_.co_spawn(watched::sleeps(), "\x1b[31mred\"\\\x01");
    const std::string text = run("--once --delay 0.1");
    EXPECT_EQ(count_of(text, "\x1b"), 0U);
    EXPECT_EQ(count_of(text, "?[31mred\"\\?"), 1U) << text;
}

TEST_F(CoilTop, OnATerminalWithKeys) {
    output_of("python3 -B " DRIVE_COIL_TOP " screen " COIL_TOP " " + place_.path());
}

TEST_F(CoilTop, AsAPage) {
    output_of("python3 -B " DRIVE_COIL_TOP " page " COIL_TOP " " + place_.path());
}

TEST_F(CoilTop, AsAPageInABrowser) {
    if (std::getenv("COIL_TEST_BROWSER") == nullptr ||
        std::system("chromium --version > /dev/null 2>&1") != 0) {
        GTEST_SKIP() << "only with Chromium, in ./dev test --night or with COIL_TEST_BROWSER=1";
    }
    output_of("python3 -B " DRIVE_COIL_TOP " browser " COIL_TOP " " + place_.path());
}

TEST_F(CoilTop, SaysWhyThereIsNoAnswer) {
    std::FILE* const pipe =
        ::popen("python3 -B " COIL_TOP " /no/such/socket --once 2>&1; echo status $?", "r");
    std::array<char, 500> text{};
    const std::size_t size = std::fread(text.data(), 1, text.size(), pipe);
    EXPECT_EQ(::pclose(pipe), 0);
    EXPECT_EQ(std::string_view(text.data(), size),
              "coil-top: /no/such/socket: [Errno 2] No such file or directory\nstatus 1\n");
}

} // namespace
