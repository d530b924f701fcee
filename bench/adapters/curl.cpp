// coil::curl and curl_multi_poll(): small GETs, 50 at a time, from a server on another thread.

#include "rounds.hpp"

#include <coil/coil.hpp>
#include <coil/curl.hpp>

#include <cstdint>
#include <future>
#include <thread>

#include <curl/curl.h>

using namespace coil;

namespace {

constexpr int parallel = 50;

void check(bool ok, const char* what) {
    if (!ok) {
        std::fprintf(stderr, "%s failed\n", what);
        std::exit(1);
    }
}

task<> answer(net::socket peer) {
    peer.set_no_delay(true);
    char buffer[4096];
    while (co_await peer.recv(buffer) > 0) { // a small GET comes in one piece
        co_await peer.send_all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    }
}
task<> serve(std::promise<std::uint16_t> port) {
    net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
    port.set_value(acceptor.local_address().port());
    while (net::socket peer = co_await acceptor.accept()) {
        co_spawn(answer(std::move(peer)));
    }
}

std::size_t append(char* data, std::size_t, std::size_t size, void* body) {
    static_cast<std::string*>(body)->append(data, size);
    return size;
}

::CURL* make_easy(const std::string& url, std::string& body) {
    ::CURL* const easy = ::curl_easy_init();
    ::curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    ::curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    ::curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &append);
    ::curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    ::curl_easy_setopt(easy, CURLOPT_PRIVATE, &body);
    return easy;
}

/// Each request gets a new easy handle, unless `reuse` says that one handle repeats the same
/// request.
void by_hand(const std::string& url, long n, bool reuse) {
    ::CURLM* const multi = ::curl_multi_init();
    std::vector<std::string> bodies(parallel);
    long started = 0;
    for (std::string& body : bodies) {
        ::curl_multi_add_handle(multi, make_easy(url, body));
        ++started;
    }
    for (long done = 0; done < n;) {
        int running = 0;
        check(::curl_multi_perform(multi, &running) == CURLM_OK, "curl_multi_perform");
        int left = 0;
        while (const ::CURLMsg* const message = ::curl_multi_info_read(multi, &left)) {
            ::CURL* easy = message->easy_handle;
            std::string* body = nullptr;
            ::curl_easy_getinfo(easy, CURLINFO_PRIVATE, &body);
            check(message->data.result == CURLE_OK && *body == "hello", "a request");
            ::curl_multi_remove_handle(multi, easy);
            body->clear();
            ++done;
            const bool another = started < n;
            if (!reuse || !another) {
                ::curl_easy_cleanup(easy);
                easy = another ? make_easy(url, *body) : nullptr;
            }
            if (another) {
                ::curl_multi_add_handle(multi, easy);
                ++started;
            }
        }
        if (done < n) {
            ::curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
        }
    }
    ::curl_multi_cleanup(multi);
}

task<> get_many(curl::client& client, const std::string& url, long n) {
    for (long i = 0; i < n; ++i) {
        check((co_await client.get(url)).body == "hello", "a request");
    }
}
task<> by_coil(const std::string& url, long n) {
    curl::client client;
    scope all;
    for (int i = 0; i < parallel; ++i) {
        all.spawn(get_many(client, url, n / parallel));
    }
    co_await all.join();
}

} // namespace

int main(int argc, char** argv) {
    ::setenv("no_proxy", "127.0.0.1", 1);
    const long n = rounds::operations(argc, argv, 10'000);
    std::promise<std::uint16_t> port;
    auto known = port.get_future();
    io_context server;
    server.co_spawn(serve(std::move(port)));
    server.start();
    const std::string url = "http://127.0.0.1:" + std::to_string(known.get()) + "/";

    // The CPU time includes that of the server, which is the same for both.
    rounds::compare("GET of 5 bytes, 50 at a time", n,
                    {{"libcurl, curl_multi_poll()", [&](long k) { by_hand(url, k, false); }},
                     {"the same, easy handles reused", [&](long k) { by_hand(url, k, true); }},
                     {"coil, get()", [&](long k) { coil::run(by_coil(url, k)); }}});
    server.stop();
    server.join();
}
