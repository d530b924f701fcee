// coil::curl when the server or the network fails, and when transfers are cancelled.

#include "http_server.hpp"
#include "support/cutting_proxy.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>

namespace curl_test {

namespace {

class CurlFailures : public CurlTest {};

/// Reads a body to its end.
task<std::size_t> drain(curl::transfer& t) {
    std::array<char, 20'000> block; // NOLINT(*-member-init): a receive buffer
    std::size_t total = 0;
    while (const int n = co_await t.read_some(block)) {
        total += static_cast<std::size_t>(n);
    }
    co_return total;
}

TEST_F(CurlFailures, ErrorsNameTheUrlWithoutCredentials) {
    run_checked([]() -> task<> {
        curl::client client;
        const std::string at = "127.0.0.1:" + std::to_string(free_port()) + "/path?a@b";
        const auto text = co_await message_of<curl::error>(client.get("http://user:secret@" + at));
        expect_contains(text, "GET http://" + at + ": Failed to connect");
        EXPECT_EQ(text.find("secret"), std::string::npos);
        EXPECT_EQ(co_await code_of(client.get("http://" + at)), std::errc::connection_refused);
        EXPECT_EQ((co_await code_of(client.get("file:///etc/passwd"))).value(),
                  CURLE_UNSUPPORTED_PROTOCOL);
        EXPECT_EQ((co_await code_of(client.get("http://"))).value(), CURLE_URL_MALFORMAT);
        EXPECT_EQ(client.active(), 0U);
    }());
}

TEST_F(CurlFailures, LimitsOfTheRequest) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        const auto text = co_await message_of<curl::error>(
            client.perform({.url = s.url("/size/100001"), .max_body = 100000}));
        expect_contains(text, "the body exceeds 100000 bytes");
        EXPECT_EQ(
            (co_await client.perform({.url = s.url("/size/1000"), .max_body = 1000})).body.size(),
            1000U);
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(co_await code_of(client.perform({.url = s.url("/silent"), .timeout = 30ms})),
                  std::errc::timed_out);
        const auto code = co_await code_of(limited(client.get(s.url("/silent")), 30ms));
        EXPECT_EQ(code, std::make_error_code(std::errc::timed_out));
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
        EXPECT_EQ(client.active(), 0U);
        EXPECT_EQ((co_await client.get(s.url("/"))).body, "hello");
    }(server));
}

TEST_F(CurlFailures, ABodyThatIsCutIsAnError) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        for (const int n : {0, 1, 16383, 16384, 400'000, 1'000'000}) {
            const std::string url = s.url("/cut/" + std::to_string(n));
            expect_contains(co_await message_of<curl::error>(client.get(url)), "GET " + url);
            auto t = client.start({.url = url});
            expect_contains(co_await message_of<curl::error>(drain(t)), "GET " + url);
        }
    }(server));
}

TEST_F(CurlFailures, AResetAfterAnyNumberOfBytesIsReported) {
    cutting_proxy proxy(server.port());
    for (const std::uint64_t bytes : {1, 5, 15, 30, 33, 34, 50, 1000, 16384, 100'000, 1'000'000}) {
        proxy.cut_after(bytes);
        run_checked([](cutting_proxy& p) -> task<> {
            curl::client client;
            const std::string url =
                "http://127.0.0.1:" + std::to_string(p.port()) + "/size/2000000";
            const auto text = co_await message_of<curl::error>(limited(client.get(url), 10s));
            expect_contains(text, "GET " + url);
            auto t = client.start({.url = url});
            co_await message_of<curl::error>(limited(drain(t), 10s));
        }(proxy));
    }
}

TEST_F(CurlFailures, AServerThatIsKilledDuringATransfer) {
    if (!has_program("python3")) {
        GTEST_SKIP() << "python3 is not installed (Debian package python3)";
    }
    temporary_folder folder;
    std::ofstream(folder.path() / "small") << "small file";
    const auto large = folder.path() / "large";
    std::ofstream(large).close();
    std::filesystem::resize_file(large, 300'000'000);
    const std::uint16_t port = free_port();
    server_process python({"python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory",
                           folder.path().string(), std::to_string(port)},
                          port, folder.path() / "log");
    run_checked([](server_process& p) -> task<> {
        curl::client client;
        const std::string url = "http://127.0.0.1:" + std::to_string(p.port());
        EXPECT_EQ((co_await client.get(url + "/small")).body, "small file");
        auto t = client.start({.url = url + "/large"});
        char block[1000];
        EXPECT_GT(int(co_await t.read_some(block)), 0);
        p.kill();
        expect_contains(co_await message_of<curl::error>(limited(drain(t), 10s)),
                        "GET " + url + "/large");
        co_await message_of<curl::error>(t.finish());
        co_await message_of<curl::error>(client.get(url + "/small"));
        p.restart();
        EXPECT_EQ((co_await client.get(url + "/small")).body, "small file");
    }(python));
}

TEST_F(CurlFailures, ACancellationAtAnyMomentLeavesTheClientUsable) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        const auto after = [](int turns) -> task<> {
            for (int i = 0; i < turns; ++i) {
                co_await yield();
            }
        };
        const auto upload = [&]() -> task<> {
            auto t = client.start({.url = s.url("/echo"), .upload = curl::unknown_size});
            co_await t.write_some(std::string(300'000, 'x'));
            co_await t.shutdown_write();
            co_await t.finish();
        };
        const auto download = [&]() -> task<> {
            auto t = client.start({.url = s.url("/chunked/600000")});
            co_await t.status();
            co_await drain(t);
        };
        for (int turns = 0; turns < 150; ++turns) {
            co_await when_all(when_any(client.get(s.url("/size/50000")), after(turns)),
                              when_any(upload(), after(2 * turns)),
                              when_any(download(), after(3 * turns)));
            EXPECT_EQ(client.active(), 0U);
        }
        EXPECT_EQ((co_await client.get(s.url("/"))).body, "hello");
    }(server));
}

TEST_F(CurlFailures, ACancelledReadLosesNothing) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        auto t = client.start({.url = s.url("/later")});
        char block[10];
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(int(co_await limited(t.read_some(block), 1ms)), -ETIMEDOUT);
        }
        s.release();
        EXPECT_EQ(int(co_await t.read_some(block)), 4);
        EXPECT_EQ(std::string_view(block, 4), "late");
    }(server));
}

TEST_F(CurlFailures, FramesMayBeDestroyedWhileTransfersAreUnderWay) {
    const std::set<int> before = coil_test::open_descriptors();
    for (int turns = 0; turns < 40; ++turns) {
        io_context context;
        context.co_spawn([](http_server& s) -> task<> {
            curl::client client;
            auto paused = client.start({.url = s.url("/size/5000000")});
            auto upload = client.start({.url = s.url("/echo"), .upload = curl::unknown_size});
            co_await when_all(client.get(s.url("/silent")), client.get(s.url("/size/9000000")),
                              paused.status(), upload.status());
        }(server));
        context.co_spawn([](int n) -> task<> {
            co_await sleep_for(std::chrono::microseconds(150 * n));
            this_context().stop();
        }(turns));
        context.run();
    } // destroying the context destroys the frames
    expect_descriptors(before);
}

TEST_F(CurlFailures, ADestroyedClientEndsItsTransfers) {
    run_checked([](http_server& s) -> task<> {
        auto client = std::make_unique<curl::client>();
        auto t = client->start({.url = s.url("/silent")});
        const auto destroy = [&]() -> task<> {
            co_await sleep_for(5ms);
            client.reset();
        };
        const auto [a, b, nothing] =
            co_await when_all(message_of<curl::error>(client->get(s.url("/silent"))),
                              message_of<curl::error>(t.status()), destroy());
        static_cast<void>(nothing);
        expect_contains(a, "GET " + s.url("/silent") + ": the client was destroyed");
        EXPECT_EQ(a, b);
    }(server));
}

TEST_F(CurlFailures, TheExampleRuns) {
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    if (folder == nullptr) {
        GTEST_SKIP() << "COIL_EXAMPLES_DIR is not set; ctest sets it";
    }
    const auto ran = coil::run([](std::vector<std::string> argv) -> task<process_output> {
        auto p = process::spawn(argv);
        co_return co_await p.output();
    }({std::string(folder) + "/fetch_all", server.url("/"), server.url("/size/1000"),
                                                                 server.url("/status/404")}));
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.out, "200 5 " + server.url("/") + "\n200 1000 " + server.url("/size/1000") +
                           "\n404 4 " + server.url("/status/404") + "\n");
}

} // namespace

} // namespace curl_test
