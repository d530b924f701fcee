// sendfile() on a connection whose kernel encrypts, interrupted in the middle: the bytes that it
// reports have been sent once, and later calls continue or return the right error.

#include "tls/kernel_support.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

using namespace coil;
using namespace tls_test;

namespace {

constexpr std::size_t size = 3'000'000; // more than the double's sockets hold
constexpr long windows[] = {1, 5000, 16'384, 65'536, 65'537, 300'000};

task<int> send_and_end(tls::stream& to, const fs::file& file, std::size_t offset) {
    const int n = co_await sendfile(to, file, offset);
    EXPECT_EQ(co_await to.shutdown_write(), 0);
    co_return n;
}

/// Two ends whose session tickets have been sent; then the kernel sends `window` bytes of data.
task<two_ends> ends_with_window(kernel_plan& plan, long window) {
    two_ends both = co_await kernel_ends();
    EXPECT_EQ(co_await both.server.write_some("x"), 1);
    EXPECT_EQ(co_await read_exactly(both.client, 1), "x");
    plan.window = window;
    co_return both;
}

struct interrupted {
    int sent;
    std::string received;
};

/// Sends a file, and cancels that when the client has received all that the window allows.
task<interrupted> send_until_cancelled(two_ends& both, const fs::file& file, long window) {
    auto sending = spawn(sendfile(both.server, file));
    std::string received = co_await read_exactly(both.client, static_cast<std::size_t>(window));
    sending.cancel(); // it cannot send the rest
    const int sent = co_await sending;
    co_return interrupted{sent, std::move(received)};
}

TEST(TlsKernelCancel, ACancelledSendfileReportsWhatIsSentAndTheNextOneContinues) {
    auto main = [](kernel_plan& plan, long window) -> task<> {
        const std::string text = pattern(size);
        const fs::file file = co_await file_with(text);
        two_ends both = co_await ends_with_window(plan, window);
        const auto [sent, begin] = co_await send_until_cancelled(both, file, window);
        EXPECT_GE(sent, window);
        EXPECT_LT(sent, static_cast<int>(size));
        plan.window = kernel_plan::unlimited;
        const auto [rest, end] =
            co_await when_all(send_and_end(both.server, file, static_cast<std::size_t>(sent)),
                              read_to_end(both.client));
        EXPECT_EQ(sent + rest, static_cast<int>(size));
        EXPECT_TRUE(begin + end == text) << end.size();
    };
    for (const long window : windows) {
        SCOPED_TRACE(window);
        const auto plan = make_plan();
        run_with(plan, main(*plan, window));
        EXPECT_EQ(plan->messages[21], 1); // close_notify
    }
}

TEST(TlsKernelCancel, OtherCallsMayFollowACancelledSendfile) {
    auto main = [](kernel_plan& plan, long window) -> task<> {
        const std::string text = pattern(size);
        const fs::file file = co_await file_with(text);
        two_ends both = co_await ends_with_window(plan, window);
        const auto [sent, begin] = co_await send_until_cancelled(both, file, window);
        plan.window = kernel_plan::unlimited;
        EXPECT_EQ(co_await both.client.write_some("q"), 1);
        EXPECT_EQ(co_await read_exactly(both.server, 1), "q");
        co_await when_all(
            send_text(both.server, "after"),
            expect_text(both.client,
                        text.substr(begin.size(), static_cast<std::size_t>(sent) - begin.size()) +
                            "after"));
    };
    for (const long window : windows) {
        SCOPED_TRACE(window);
        const auto plan = make_plan();
        run_with(plan, main(*plan, window));
    }
}

TEST(TlsKernelCancel, ASendfileCancelledBeforeItSends) {
    auto main = [](kernel_plan& plan) -> task<> {
        const std::string text = pattern(size);
        const fs::file file = co_await file_with(text);
        two_ends both = co_await ends_with_window(plan, 1000);
        auto writing = spawn(write_all(both.server, text)); // holds the lock of sending
        EXPECT_TRUE(co_await read_exactly(both.client, 1000) == text.substr(0, 1000));
        auto sending = spawn(sendfile(both.server, file));
        co_await yield();
        sending.cancel();
        EXPECT_EQ(co_await sending, -ECANCELED);
        plan.window = kernel_plan::unlimited;
        EXPECT_TRUE(co_await read_exactly(both.client, size - 1000) == text.substr(1000));
        EXPECT_EQ(co_await writing, static_cast<int>(size));
        co_await when_all(send_text(both.server, "after"), expect_text(both.client, "after"));
    };
    const auto plan = make_plan();
    run_with(plan, main(*plan));
}

TEST(TlsKernelCancel, AnErrorInTheMiddleIsReturnedByTheNextCall) {
    auto main = [](kernel_plan& plan) -> task<> {
        const fs::file file = co_await file_with(pattern(size));
        two_ends both = co_await ends_with_window(plan, 100'000);
        auto sending = spawn(sendfile(both.server, file));
        co_await read_exactly(both.client, 100'000);
        plan.break_sending = true;
        plan.window = kernel_plan::unlimited;
        const int sent = co_await sending;
        EXPECT_GE(sent, 100'000);
        EXPECT_LT(sent, static_cast<int>(size));
        EXPECT_EQ(co_await sendfile(both.server, file, static_cast<std::size_t>(sent)), -EPIPE);
    };
    const auto plan = make_plan();
    run_with(plan, main(*plan));
}

TEST(TlsKernelCancel, ADestroyedSendfileEndsTheConnection) {
    // The coroutine is destroyed with its context, and with it the number of the bytes sent.
    auto main = [](kernel_plan& plan, io_context& context,
                   std::unique_ptr<two_ends>& kept) -> task<> {
        const fs::file file = co_await file_with(pattern(size));
        kept = std::make_unique<two_ends>(co_await ends_with_window(plan, 100'000));
        auto sending = spawn(sendfile(kept->server, file));
        co_await read_exactly(kept->client, 100'000);
        context.stop();
        co_await sending;
    };
    auto use = [](two_ends& both) -> task<> {
        const fs::file file = co_await file_with("text");
        EXPECT_EQ(co_await sendfile(both.server, file), -EPROTO);
        EXPECT_EQ(co_await both.server.write_some("x"), -EPROTO);
        EXPECT_EQ(co_await both.server.shutdown_write(), -EPROTO);
        EXPECT_NE(both.server.last_error().find("destroyed"), std::string::npos)
            << both.server.last_error();
    };
    const auto plan = make_plan();
    std::unique_ptr<two_ends> kept;
    {
        io_context context(kernel_double::options(plan));
        context.co_spawn(main(*plan, context, kept));
        context.run();
    }
    ASSERT_NE(kept, nullptr);
    coil::run(use(*kept));
}

TEST(TlsKernelCancel, AnAlertOfAReadFollowsTheFile) {
    auto main = [](kernel_plan& plan) -> task<> {
        const std::string text = pattern(size);
        const fs::file file = co_await file_with(text);
        two_ends both = co_await ends_with_window(plan, 1000);
        auto sending = spawn(sendfile(both.server, file));
        const std::string begin = co_await read_exactly(both.client, 1000);
        constexpr std::string_view garbage = "no record at all";
        EXPECT_EQ(co_await both.client.transport().send_all(garbage),
                  static_cast<int>(garbage.size()));
        char buf[8];
        EXPECT_EQ(co_await both.server.read_some(buf), -EPROTO);
        plan.window = kernel_plan::unlimited;
        const std::string end = co_await read_exactly(both.client, size - begin.size());
        EXPECT_TRUE(begin + end == text);
        EXPECT_EQ(co_await sending, static_cast<int>(size));
        EXPECT_EQ(co_await timeout(both.client.read_some(buf), 20s), -EPROTO);
        EXPECT_NE(both.client.last_error().find("alert"), std::string::npos)
            << both.client.last_error();
    };
    const auto plan = make_plan();
    run_with(plan, main(*plan));
}

} // namespace
