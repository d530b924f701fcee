// Every call, interrupted at every await: by an error of the transport, by a cancellation, by the
// destruction of its coroutine.

#include "tls/support.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

using namespace coil;
using namespace tls_test;

namespace {

/// Counts its calls and, at one of them, fails or calls a function.
struct interruption {
    int calls = 0;
    int at = -1;
    int error = 0;                        // returned instead of a transfer
    std::function<void()> action = [] {}; // called before the transfer

    [[nodiscard]] bool is_now() { return calls++ == at; }
};

class interrupted_socket {
public:
    interrupted_socket(net::socket s, interruption& by) : socket_(std::move(s)), by_(&by) {}

    task<io_result> read_some(mutable_buffer to) {
        if (by_->is_now()) {
            if (by_->error < 0) {
                co_return io_result(by_->error);
            }
            by_->action();
        }
        co_return co_await socket_.read_some({to.data(), std::min<std::size_t>(to.size(), 700)});
    }
    task<io_result> write_some(const_buffer from) {
        if (by_->is_now()) {
            if (by_->error < 0) {
                co_return io_result(by_->error);
            }
            by_->action();
        }
        co_return co_await socket_.write_some(
            {from.data(), std::min<std::size_t>(from.size(), 900)});
    }
    task<io_result> shutdown_write() { co_return co_await socket_.shutdown_write(); }

private:
    net::socket socket_;
    interruption* by_;
};

using interrupted = tls::basic_stream<interrupted_socket>;

/// Sends everything back, and closes when the client does.
task<> echo_back(tls::stream s) {
    EXPECT_EQ(co_await s.accept(), 0) << s.last_error();
    char buf[4000];
    for (;;) {
        const int n = co_await s.read_some(buf);
        if (n <= 0) {
            EXPECT_EQ(n, 0) << s.last_error();
            break;
        }
        EXPECT_EQ(co_await write_all(s, const_buffer(buf, n)), n);
    }
    EXPECT_EQ(co_await s.shutdown(), 0);
}

/// The progress of a client, from which another coroutine can continue.
struct progress {
    bool shaken = false;
    std::size_t sent = 0;
    std::size_t updated = 0;
    std::string got;
};

constexpr std::size_t total = 3000;

/// Continues from `p`. Returns 0 at the end, or the error of the call that was interrupted.
task<int> client_program(interrupted& s, progress& p, const std::string& text) {
    if (!p.shaken) {
        if (const int r = co_await s.handshake("example.test"); r < 0) {
            co_return r;
        }
        p.shaken = true;
    }
    char buf[1500];
    while (p.got.size() < total) {
        while (p.sent < total) {
            const int n =
                co_await s.write_some({text.data() + p.sent, std::min<std::size_t>(1500, total)});
            if (n < 0) {
                co_return n;
            }
            p.sent += static_cast<std::size_t>(n);
        }
        if (p.updated == 0) {
            if (const int r = co_await s.update_keys(); r < 0) {
                co_return r;
            }
            p.updated = 1;
        }
        const int n = co_await s.read_some(buf);
        if (n <= 0) {
            co_return n == 0 ? -ENODATA : n;
        }
        p.got.append(buf, static_cast<std::size_t>(n));
    }
    co_return co_await s.shutdown();
}

/// Runs the program with an interruption at call `at`. Returns whether there was such a call.
task<bool> interrupted_at(int at, int error, bool cancels, int& interruptions) {
    auto [a, b] = net::socket::pair();
    auto serving = coil::spawn(echo_back(tls::stream(std::move(b), server_context())));
    interruption by;
    by.at = at;
    by.error = error;
    interrupted client(interrupted_socket(std::move(a), by), client_context());
    progress p;
    const std::string text = pattern(total);
    int result = -1;
    for (int attempts = 0; attempts < 3; ++attempts) {
        auto running = coil::spawn(client_program(client, p, text));
        by.action = [&] {
            if (cancels) {
                running.cancel();
            }
        };
        result = co_await running;
        by.action = [] {};
        if (result == 0) {
            break;
        }
        ++interruptions;
        EXPECT_EQ(result, cancels ? -ECANCELED : error) << "at call " << at;
        EXPECT_EQ(client.last_error(), "");
    }
    EXPECT_EQ(result, 0) << "at call " << at << ": " << client.last_error();
    EXPECT_TRUE(p.got == text) << "at call " << at;
    co_await serving;
    co_return by.calls > at;
}

TEST(TlsCancel, EveryTransferFailedOnceAndTheCallRepeated) {
    for (const int error : {-ECANCELED, -ENOBUFS}) {
        int interruptions = 0;
        int at = 0;
        while (at < 200 && coil::run(interrupted_at(at, error, false, interruptions))) {
            ++at;
        }
        EXPECT_GT(at, 12);
        EXPECT_LT(at, 200);
        EXPECT_GT(interruptions, at / 2); // a write that took its data reports no error
    }
}

TEST(TlsCancel, G3_EveryAwaitCancelledAndTheCallRepeated) {
    int interruptions = 0;
    int at = 0;
    while (at < 200 && coil::run(interrupted_at(at, 0, true, interruptions))) {
        ++at;
    }
    EXPECT_GT(at, 12);
    EXPECT_LT(at, 200);
    EXPECT_GT(interruptions, 5);
}

TEST(TlsCancel, G5_EveryAwaitDestroyed) {
    // The context ends while the program is suspended at each of its transfers.
    int at = 0;
    bool reached = true;
    for (; reached && at < 200; ++at) {
        interruption by;
        by.at = at;
        reached = false;
        progress p;
        const std::string text = pattern(total);
        coil::io_context context;
        auto [a, b] = net::socket::pair();
        interrupted client(interrupted_socket(std::move(a), by), client_context());
        by.action = [&] {
            reached = true;
            context.stop();
        };
        context.co_spawn(echo_back(tls::stream(std::move(b), server_context())));
        [[maybe_unused]] auto running = context.spawn(client_program(client, p, text));
        context.run();
    }
    EXPECT_GT(at, 12);
    EXPECT_LT(at, 200);
}

TEST(TlsCancel, ADestroyedTransferEndsTheConnection) {
    two_ends both;
    coil::run(expect_handshake(both));
    {
        io_context context;
        auto reading = [](tls::stream& s, io_context& c) -> task<> {
            auto read = [](tls::stream& t) -> task<> {
                char buf[8];
                co_await t.read_some(buf);
            };
            c.co_spawn(read(s));
            co_await sleep_for(1ms);
            c.stop();
        };
        context.co_spawn(reading(both.client, context));
        context.run();
    }
    auto use = [](tls::stream& s) -> task<> {
        char buf[8];
        EXPECT_EQ(co_await s.read_some(buf), -EPROTO);
        EXPECT_NE(s.last_error().find("destroyed"), std::string::npos) << s.last_error();
        EXPECT_EQ(co_await s.write_some("x"), -EPROTO);
    };
    coil::run(use(both.client));
}

TEST(TlsCancel, Timeouts) {
    auto main = []() -> task<> {
        two_ends both;
        EXPECT_EQ(co_await timeout(both.client.handshake("example.test"), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(both.client.handshake("example.test"), 5ms), -ETIMEDOUT);
        auto serving = coil::spawn(as_server(both.server));
        EXPECT_EQ(co_await both.client.handshake("example.test"), 0); // continues
        EXPECT_EQ(co_await serving, 0);
        char buf[8];
        EXPECT_EQ(co_await timeout(both.client.read_some(buf), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(both.client.shutdown(), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await both.server.shutdown(), 0);
        EXPECT_EQ(co_await both.client.shutdown(), 0);
    };
    coil::run(main());
}

TEST(TlsCancel, AWriteThatIsCancelledLosesAndRepeatsNothing) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        const std::string text = pattern(8 << 20);
        std::size_t accepted = 0;
        auto read = [](tls::stream& s, const std::string& t) -> task<> {
            std::string got;
            char buf[30000];
            for (;;) {
                const int n = co_await s.read_some(buf);
                if (n <= 0) {
                    EXPECT_EQ(n, 0);
                    break;
                }
                got.append(buf, static_cast<std::size_t>(n));
                co_await sleep_for(50us);
            }
            EXPECT_TRUE(got == t);
        };
        auto reading = coil::spawn(read(both.server, text));
        auto write = [](tls::stream& s, const std::string& t, std::size_t& done) -> task<int> {
            while (done < t.size()) {
                const int n = co_await s.write_some({t.data() + done, t.size() - done});
                if (n < 0) {
                    co_return n;
                }
                done += static_cast<std::size_t>(n);
            }
            co_return 0;
        };
        int cancelled = 0;
        for (int attempts = 0; accepted < text.size() && attempts < 100'000; ++attempts) {
            auto writing = coil::spawn(write(both.client, text, accepted));
            co_await sleep_for(300us);
            writing.cancel();
            cancelled += co_await writing == -ECANCELED ? 1 : 0;
        }
        EXPECT_GT(cancelled, 0);
        EXPECT_EQ(co_await both.client.shutdown_write(), 0);
        co_await reading;
    };
    coil::run(main());
}

} // namespace
