// Resolves all names at the same time over DNS and prints their addresses:
//
//     dns_query [-s SERVER:PORT] NAME...

#include <coil/cares.hpp>
#include <coil/coil.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

// [query]
task<std::string> query(cares::resolver& names, std::string host) {
    try {
        std::string text = host;
        for (const net::inet_address& a : co_await timeout(names.resolve(host, 0), 5s)) {
            text += ' ' + a.ip();
        }
        co_return text;
    } catch (const std::system_error& e) {
        co_return e.what();
    }
}
// [/query]

task<> query_all(std::vector<std::string> hosts, cares::resolver_options options) {
    cares::resolver names(options);
    std::vector<task<std::string>> queries;
    for (const std::string& host : hosts) {
        queries.push_back(query(names, host));
    }
    for (const std::string& line : co_await when_all(std::move(queries))) {
        std::printf("%s\n", line.c_str());
    }
}

int main(int argc, char** argv) {
    cares::resolver_options options;
    if (argc > 2 && std::string_view(argv[1]) == "-s") {
        options.servers.push_back(net::inet_address::parse(argv[2]).value());
        argv += 2;
        argc -= 2;
    }
    coil::run(query_all({argv + 1, argv + argc}, options));
}
