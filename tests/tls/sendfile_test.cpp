// sendfile() over TLS: the same results whether the kernel encrypts or OpenSSL does.

#include "tls/kernel_support.hpp"

#include <limits>
#include <memory>
#include <string>

#include <poll.h>

using namespace coil;
using namespace tls_test;

namespace {

task<two_ends> ends_for(bool by_kernel) {
    if (by_kernel) {
        co_return co_await kernel_ends();
    }
    two_ends both = co_await tcp_ends(client_context(), server_context());
    co_await expect_handshake(both);
    co_return both;
}

task<int> send_and_end(tls::stream& to, const fs::file& file, std::uint64_t offset,
                       std::size_t count) {
    const int n = co_await sendfile(to, file, offset, count);
    EXPECT_EQ(co_await to.shutdown_write(), 0);
    co_return n;
}

class TlsSendfile : public testing::TestWithParam<bool> {
protected:
    void run_main(task<> main) { run_with(plan, std::move(main)); }
    std::shared_ptr<kernel_plan> plan = make_plan();
};

TEST_P(TlsSendfile, EverySizeAndOffset) {
    run_main([](bool by_kernel) -> task<> {
        const std::string text = pattern(500'003);
        const fs::file file = co_await file_with(text);
        for (const std::size_t offset : {0, 1, 4096, 450'000, 500'003, 600'000}) {
            for (const std::size_t count : {0, 1, 65'536, 65'537, 300'000, 1'000'000}) {
                two_ends both = co_await ends_for(by_kernel);
                const auto [sent, got] = co_await when_all(
                    send_and_end(both.server, file, offset, count), read_to_end(both.client));
                const std::string expected =
                    offset < text.size() ? text.substr(offset, count) : std::string();
                EXPECT_EQ(sent, static_cast<int>(expected.size())) << offset << ' ' << count;
                EXPECT_TRUE(got == expected) << offset << ' ' << count;
            }
        }
    }(GetParam()));
    EXPECT_EQ(plan->splices > 0, GetParam());
}

TEST_P(TlsSendfile, BetweenWritesWhileTheOtherDirectionIsInUse) {
    run_main([](bool by_kernel) -> task<> {
        const std::string text = pattern(1'000'000);
        const fs::file file = co_await file_with(text);
        two_ends both = co_await ends_for(by_kernel);
        auto answer = [](tls::stream& to, const fs::file& f) -> task<> {
            EXPECT_EQ(co_await write_all(to, "before"), 6);
            EXPECT_EQ(co_await sendfile(to, f), 1'000'000);
            EXPECT_EQ(co_await write_all(to, "after"), 5);
            EXPECT_EQ(co_await to.shutdown_write(), 0);
        };
        co_await when_all(answer(both.server, file),
                          expect_text(both.client, "before" + text + "after"),
                          send_text(both.client, text), expect_text(both.server, text));
    }(GetParam()));
}

TEST_P(TlsSendfile, Errors) {
    run_main([](bool by_kernel) -> task<> {
        const fs::file file = co_await file_with("text");
        two_ends fresh = co_await tcp_ends(client_context(), server_context());
        EXPECT_EQ(co_await sendfile(fresh.server, file), -ENOTCONN);
        two_ends both = co_await ends_for(by_kernel);
        EXPECT_EQ(co_await sendfile(both.server, file, std::numeric_limits<std::uint64_t>::max()),
                  -EINVAL);
        EXPECT_EQ(co_await sendfile(both.server, both.client.transport()), -ESPIPE);
        EXPECT_EQ(co_await both.server.shutdown_write(), 0);
        EXPECT_EQ(co_await sendfile(both.server, file), -EPIPE);
    }(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(By, TlsSendfile, testing::Bool(),
                         [](const auto& i) { return i.param ? "Kernel" : "OpenSSL"; });

TEST(TlsSendfile, ACancelledOneReturnsTheNumberOfBytes) {
    coil::run([]() -> task<> {
        const std::string text = pattern(20'000'000);
        const fs::file file = co_await file_with(text);
        two_ends both = co_await ends_for(false);
        EXPECT_EQ(co_await both.server.write_some("x"), 1);
        EXPECT_EQ(co_await read_exactly(both.client, 1), "x"); // and the session tickets
        auto sending = spawn(sendfile(both.server, file));
        // The client does not read, so the send buffer becomes full.
        EXPECT_GE(co_await io::poll(both.client.transport().native_handle(), POLLIN), 0);
        sending.cancel();
        const int sent = co_await sending;
        EXPECT_GT(sent, 0);
        EXPECT_LT(sent, 20'000'000);
        const auto [rest, got] = co_await when_all(
            send_and_end(both.server, file, static_cast<std::uint64_t>(sent), text.size()),
            read_to_end(both.client));
        EXPECT_EQ(sent + rest, 20'000'000);
        EXPECT_TRUE(got == text);
    }());
}

} // namespace
