// Requests and streams of coil::curl.

#include "http_server.hpp"

#include <array>
#include <cerrno>
#include <set>

#include <time.h>

namespace curl_test {

namespace {

class CurlRequests : public CurlTest {};
class CurlStreams : public CurlTest {};

static_assert(byte_stream<curl::transfer>);

TEST_F(CurlRequests, ReturnsStatusHeadersAndBody) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        auto r = co_await client.get(s.url("/"));
        EXPECT_EQ(r.status, 200);
        EXPECT_EQ(r.body, "hello");
        EXPECT_EQ(r.url, s.url("/"));
        EXPECT_EQ(r.headers.find("content-length"), "5");
        EXPECT_EQ(r.headers.find("X-Empty"), "");
        EXPECT_FALSE(r.headers.find("X-None"));

        r = co_await client.get(s.url("/status/404"));
        EXPECT_EQ(r.status, 404);
        EXPECT_EQ(r.body, "text");
        r = co_await client.get(s.url("/chunked/100000"));
        EXPECT_EQ(r.body.size(), 100000U);
        EXPECT_EQ(r.headers.find("X-Trailer"), "yes");
        EXPECT_EQ(client.active(), 0U);
        EXPECT_EQ(s.connections(), 1);
    }(server));
}

TEST_F(CurlRequests, SendsMethodsHeadersAndBodies) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        const std::string url = s.url("/echo");
        const auto echo = [&](curl::request r) -> task<std::string> {
            r.url = url;
            co_return (co_await client.perform(std::move(r))).body;
        };
        const std::string binary("a\0b", 3);
        EXPECT_EQ(co_await echo({.body = binary}), "POST " + binary);
        EXPECT_EQ(co_await echo({.method = "POST"}), "POST ");
        EXPECT_EQ(co_await echo({.method = "PUT", .body = "x"}), "PUT x");
        EXPECT_EQ(co_await echo({.method = "DELETE"}), "DELETE ");
        EXPECT_EQ(co_await echo({.method = "HEAD"}), "");
        const std::string large(3'000'000, 'l'); // with "Expect: 100-continue"
        EXPECT_EQ(co_await echo({.body = large}), "POST " + large);

        curl::request r{.url = s.url("/header/x-name"), .headers = {{"X-Name", "value"}}};
        EXPECT_EQ((co_await client.perform(r)).body, "value");
        r.headers = {{"X-Name", ""}};
        EXPECT_EQ((co_await client.perform(r)).body, "");
        r = {.url = s.url("/header/user-agent")};
        r.configure = [](::CURL* handle) {
            ::curl_easy_setopt(handle, CURLOPT_USERAGENT, "configured");
        };
        EXPECT_EQ((co_await client.perform(r)).body, "configured");
    }(server));
}

TEST_F(CurlRequests, FollowsRedirectsUpToALimit) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        auto r = co_await client.perform({.url = s.url("/redirect/3"), .body = "form"});
        EXPECT_EQ(r.body, "GET "); // 303
        EXPECT_EQ(r.url, s.url("/echo"));
        EXPECT_FALSE(r.headers.find("Location"));
        r = co_await client.perform({.url = s.url("/redirect/3"), .max_redirects = 0});
        EXPECT_EQ(r.status, 303);
        EXPECT_EQ(r.body, "moved");
        EXPECT_EQ(r.headers.find("Location"), "/redirect/2");
        const auto text =
            co_await message_of<curl::error>(client.perform({.url = s.url("/redirect/11")}));
        expect_contains(text, "GET " + s.url("/redirect/11") + ": Maximum (10) redirects");
        auto t = client.start({.url = s.url("/redirect/2")});
        EXPECT_EQ(co_await t.status(), 200);
        auto endless = client.start({.url = s.url("/redirect/11")});
        const auto failed = [&]() -> task<> { co_await endless.status(); };
        EXPECT_EQ((co_await code_of(failed())).value(), CURLE_TOO_MANY_REDIRECTS);
    }(server));
}

// Easy handles are reused.
TEST_F(CurlRequests, ARequestInheritsNothingFromEarlierOnes) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        const auto get = [&](const std::string& path) -> task<std::string> {
            co_return (co_await client.get(s.url(path))).body;
        };
        const std::string port = std::to_string(s.port());
        const auto as_user =
            co_await client.get("http://user:password@127.0.0.1:" + port + "/header/authorization");
        EXPECT_TRUE(as_user.body.starts_with("Basic "));
        EXPECT_EQ(co_await get("/header/authorization"), "none");

        co_await client.perform({.url = s.url("/echo"), .headers = {{"X-Name", "value"}}});
        EXPECT_EQ(co_await get("/header/x-name"), "none");
        for (const char* method : {"HEAD", "DELETE", "PUT", "POST"}) {
            co_await client.perform({.url = s.url("/echo"), .method = method});
            EXPECT_EQ(co_await get("/echo"), "GET ");
            co_await client.perform({.url = s.url("/echo"), .method = method, .body = "x"});
            EXPECT_EQ(co_await get("/echo"), "GET ");
        }
        co_await client.perform({.url = s.url("/redirect/2"), .max_redirects = 2});
        EXPECT_EQ(
            (co_await client.perform({.url = s.url("/redirect/1"), .max_redirects = 0})).status,
            303);

        curl::request r{.url = s.url("/header/cookie")};
        r.configure = [](::CURL* handle) {
            ::curl_easy_setopt(handle, CURLOPT_COOKIEFILE, "");
            ::curl_easy_setopt(handle, CURLOPT_COOKIELIST, "Set-Cookie: a=b; domain=127.0.0.1");
        };
        EXPECT_EQ((co_await client.perform(r)).body, "a=b");
        EXPECT_EQ(co_await get("/header/cookie"), "none");
        EXPECT_EQ(s.connections(), 1);
    }(server));
}

TEST_F(CurlRequests, AnIdleConnectionThatTheServerClosesCostsNoTimeAndIsReplaced) {
    run_checked([](http_server& s) -> task<> {
        const auto cpu_time = [] {
            ::timespec t{};
            ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
            return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
        };
        curl::client client;
        for (int i = 1; i <= 3; ++i) {
            EXPECT_EQ((co_await client.get(s.url("/leave"))).body, "bye");
            const auto begin = cpu_time();
            co_await sleep_for(200ms);
            EXPECT_LT(cpu_time() - begin, 100ms);
            EXPECT_EQ(s.connections(), i);
        }
        EXPECT_EQ((co_await client.get(s.url("/echo"))).body, "GET ");
    }(server));
}

TEST_F(CurlRequests, AThousandRequestsInFiftyTasks) {
    const int each = coil_test::rounds(20, 2000);
    run_checked([](http_server& s, int n) -> task<> {
        curl::client client({.max_idle_connections = 50});
        const auto work = [&](int i) -> task<> {
            for (int k = 0; k < n; ++k) {
                const std::string text = std::to_string(i * n + k);
                const auto r = co_await client.perform({.url = s.url("/echo"), .body = text});
                EXPECT_EQ(r.body, "POST " + text);
            }
        };
        scope tasks;
        for (int i = 0; i < 50; ++i) {
            tasks.spawn(work(i));
        }
        co_await tasks.join();
        EXPECT_LE(s.connections(), 50);
    }(server, each));
}

TEST_F(CurlRequests, ARequestWaitsWhenAllConnectionsAreInUse) {
    run_checked([](http_server& s) -> task<> {
        curl::client client({.max_connections = 2});
        scope tasks;
        for (int i = 0; i < 30; ++i) {
            tasks.spawn(client.get(s.url("/")));
        }
        co_await tasks.join();
        EXPECT_LE(s.connections(), 2);
    }(server));
}

TEST_F(CurlStreams, ASlowReaderSlowsDownTheServer) {
    static constexpr std::size_t size = 32UL * 1024 * 1024;
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        auto t = client.start({.url = s.url("/size/" + std::to_string(size))});
        EXPECT_EQ(co_await t.status(), 200);
        EXPECT_EQ(t.headers().find("Content-Length"), std::to_string(size));
        std::size_t early = 0;
        while (early != s.sent()) { // until all buffers on the way are full
            early = s.sent();
            co_await sleep_for(200ms);
        }
        EXPECT_LT(early, size / 2) << "the response was not paused";
        EXPECT_EQ((co_await client.get(s.url("/"))).body, "hello"); // others are not affected

        std::vector<char> block(100'000);
        std::size_t total = 0;
        bool same = true;
        while (const int n = co_await t.read_some(block)) {
            for (int i = 0; i < n; ++i) {
                same = same && block[static_cast<std::size_t>(i)] == pattern(total++);
            }
        }
        EXPECT_TRUE(same);
        EXPECT_EQ(total, size);
        EXPECT_EQ(int(co_await t.read_some(block)), 0);
    }(server));
}

TEST_F(CurlStreams, TheStatusComesBeforeTheBody) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        auto t = client.start({.url = s.url("/later")});
        EXPECT_EQ(co_await t.status(), 200);
        char block[10];
        EXPECT_EQ(int(co_await limited(t.read_some(block), 1ms)), -ETIMEDOUT);
        s.release();
        EXPECT_EQ((co_await t.finish()).body, "late");
    }(server));
}

TEST_F(CurlStreams, UploadsAsFastAsTheServerReads) {
    run_checked([](http_server& s) -> task<> {
        constexpr std::size_t size = 24UL * 1024 * 1024;
        curl::client client;
        s.read_slowly(1ms);
        auto t = client.start({.url = s.url("/echo"), .upload = curl::unknown_size});
        std::string body(size, ' ');
        for (std::size_t i = 0; i < size; ++i) {
            body[i] = pattern(i);
        }
        std::size_t written = 0;
        const auto write = [&]() -> task<> {
            while (written < size) {
                const int n = co_await t.write_some(std::string_view(body).substr(written));
                written += static_cast<std::size_t>(n);
            }
        };
        auto writer = spawn(write());
        co_await sleep_for(100ms);
        EXPECT_LT(written, size / 2) << "the request was not paused";
        s.read_slowly(0ms);
        co_await std::move(writer);
        co_await t.shutdown_write();
        const auto r = co_await t.finish();
        EXPECT_EQ(r.status, 200);
        EXPECT_TRUE(r.body == "PUT " + body);
    }(server));
}

TEST_F(CurlStreams, UploadsOfAKnownSizeByAnyMethod) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        auto t = client.start({.url = s.url("/echo"), .method = "PATCH", .upload = 6});
        co_await t.write_some("abc");
        co_await sleep_for(10ms); // paused
        co_await t.write_some("def");
        EXPECT_EQ((co_await t.finish()).body, "PATCH abcdef");

        auto none = client.start({.url = s.url("/echo"), .upload = curl::unknown_size});
        EXPECT_EQ((co_await none.finish()).body, "PUT ");
    }(server));
}

TEST_F(CurlStreams, AResponseBeforeTheEndOfTheUpload) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        auto t = client.start({.url = s.url("/refuse"),
                               .upload = curl::unknown_size,
                               .configure = [](::CURL* handle) {
                                   ::curl_easy_setopt(handle, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
                               }});
        const auto write = [&]() -> task<> {
            const std::string block(100'000, 'x');
            for (;;) {
                co_await t.write_some(block);
            }
        };
        const auto text = co_await message_of<curl::error>(limited(write(), 10s));
        expect_contains(text, "PUT " + s.url("/refuse"));
        const auto r = co_await t.finish();
        EXPECT_EQ(r.status, 413);
        EXPECT_EQ(r.body, "too large");
    }(server));
}

TEST_F(CurlStreams, CopiesIntoASocket) {
    run_checked([](http_server& s) -> task<> {
        curl::client client;
        auto t = client.start({.url = s.url("/chunked/1000000")});
        auto [a, b] = net::socket::pair();
        const auto pour = [](curl::transfer& from, net::socket to) -> task<> {
            EXPECT_EQ(co_await copy(from, to), 1000000U);
        };
        const auto drain = [](net::socket& from) -> task<std::size_t> {
            std::size_t total = 0;
            std::array<char, 65536> block;
            while (const int n = co_await from.recv(block)) {
                for (int i = 0; i < n; ++i) {
                    EXPECT_EQ(block[static_cast<std::size_t>(i)], pattern(total));
                    ++total;
                }
            }
            co_return total;
        };
        const auto [nothing, total] = co_await when_all(pour(t, std::move(a)), drain(b));
        static_cast<void>(nothing);
        EXPECT_EQ(total, 1000000U);
    }(server));
}

} // namespace

} // namespace curl_test
