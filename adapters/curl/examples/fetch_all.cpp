// Requests all URLs at the same time and prints the status and the size of each response:
//
//     fetch_all URL...

#include <coil/coil.hpp>
#include <coil/curl.hpp>

#include <cstdio>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

// [fetch]
task<std::string> fetch(curl::client& client, std::string url) {
    try {
        const curl::response r = co_await timeout(client.get(url), 10s);
        co_return std::to_string(r.status) + ' ' + std::to_string(r.body.size()) + ' ' + url;
    } catch (const std::system_error& e) {
        co_return e.what();
    }
}

task<> fetch_all(std::vector<std::string> urls) {
    curl::client client;
    std::vector<task<std::string>> fetches;
    for (const std::string& url : urls) {
        fetches.push_back(fetch(client, url));
    }
    for (const std::string& line : co_await when_all(std::move(fetches))) {
        std::printf("%s\n", line.c_str());
    }
}
// [/fetch]

int main(int argc, char** argv) { coil::run(fetch_all({argv + 1, argv + argc})); }
