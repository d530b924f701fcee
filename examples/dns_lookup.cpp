// dns_lookup NAME...: prints the addresses of host names, in the order in which a client should try
// them. Without arguments it reads the names from the lines of its standard input.
//
//     dns_lookup example.org localhost ::1
//     dns_lookup --parallel 32 --limit 2000 < names
//
// Many look-ups run at the same time, but the answers are printed in the order of the names.
// --limit is the time for each name in milliseconds. If a name has no answer within the limit, the
// exit status is 1.

#include "server.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <ranges>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

using namespace coil;

namespace {

struct answer {
    std::string text;
    bool failed = false;
};

/// Stores one line: "NAME: ADDRESS ADDRESS", or "NAME: error: REASON".
task<> look_up(std::string name, std::chrono::milliseconds limit, answer& to) {
    try {
        const auto first =
            co_await when_any(net::resolve(name, std::uint16_t{0}), sleep_for(limit));
        if (first.index == 1) {
            to = {name + ": error: no answer within the limit", true};
            co_return;
        }
        std::string text = name + ':';
        for (const net::inet_address& address : std::get<0>(first.value)) {
            text += ' ' + address.ip();
        }
        to = {std::move(text)};
    } catch (const std::system_error& e) {
        to = {name + ": error: " + e.code().message(), true};
    }
}

/// The lines of the standard input that are not empty.
task<std::vector<std::string>> names_on_standard_input() {
    struct input {
        auto read_some(mutable_buffer to) { return io::read(STDIN_FILENO, to); }
    } standard_input;
    buffered_reader reader{standard_input};
    std::vector<std::string> names;
    auto lines = reader.lines();
    while (const auto line = co_await lines.next()) {
        if (!line->empty()) {
            names.emplace_back(*line);
        }
    }
    co_return names;
}

/// Returns whether every name has an address.
task<bool> run(std::vector<std::string> names, std::size_t parallel,
               std::chrono::milliseconds limit) {
    if (names.empty()) {
        names = co_await names_on_standard_input();
    }
    std::vector<answer> answers(names.size());
    co_await for_each_concurrent(
        std::views::iota(std::size_t{0}, names.size()), parallel,
        [&](std::size_t i) { return look_up(names[i], limit, answers[i]); });
    bool complete = true;
    for (const answer& a : answers) {
        std::fprintf(a.failed ? stderr : stdout, "%s\n", a.text.c_str());
        complete = complete && !a.failed;
    }
    co_return complete;
}

} // namespace

int main(int argc, char** argv) try {
    std::size_t parallel = 16;
    std::chrono::milliseconds limit{5000};
    std::vector<std::string> names;
    if (!example::read_options(argc, argv, {{"--parallel", parallel}, {"--limit", limit}}, names) ||
        parallel == 0) {
        std::fprintf(stderr, "usage: dns_lookup [--parallel N] [--limit MS] [NAME...]\n");
        return 2;
    }
    return coil::run(run(std::move(names), parallel, limit)) ? 0 : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "dns_lookup: %s\n", e.what());
    return 1;
}
