// pstree_exec [OPTIONS] PORT COMMAND [ARGUMENT...]: a server that starts a process for each
// request.
//
//     pstree_exec 9000 pstree -ap                 # echo | nc localhost 9000: the tree of processes
//     pstree_exec --limit 2000 9000 wc -c
//
// A request is a line, which becomes the standard input of the command. The answer begins with a
// line that contains the number of bytes that the command has printed (on both of its streams) and
// how the command has ended; then these bytes follow. A client may send many requests, which are
// answered one after the other.
//
//     --processes N   at most N processes at a time (16); further requests wait
//     --limit MS      a process that runs for longer is terminated, with all its descendants
//     --output BYTES  a process that prints more is terminated
//
// On SIGINT or SIGTERM the server stops accepting, and connected clients have five seconds to
// finish. Then it cancels the remaining sessions, which terminates their processes.

#include "server.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

struct settings {
    std::vector<std::string> command;
    std::size_t processes = 16;
    std::chrono::milliseconds limit = 10s;
    std::size_t output = 1 << 20;
};

std::string described(const std::string& ending, std::string_view output) {
    return std::to_string(output.size()) + " bytes, " + ending + '\n' + std::string(output);
}

/// Runs the command once. When this returns or throws, its process has ended and is reaped.
task<std::string> answer(const settings& with, std::string request) {
    process p = process::spawn(
        with.command,
        {.standard_error = redirect::to_stdout(), .new_process_group = true, .grace = 1s});
    request += '\n';
    // A request fits into a pipe, so this does not wait for a command that reads nothing. Input
    // that the command has not read when it ends is dropped.
    if (const io_result sent = co_await write_all(p.stdin(), request); sent < 0 && sent != -EPIPE) {
        throw std::system_error(sent.error(), "cannot write to the process");
    }
    try {
        // The loser is cancelled, and a cancelled output() terminates the process.
        auto first = co_await when_any(p.output(with.output), sleep_for(with.limit));
        if (first.index == 1) {
            co_return described("terminated: it ran for too long", "");
        }
        const process_output& result = std::get<0>(first.value);
        co_return described(result.status.to_string(), result.out);
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::message_size) {
            throw;
        }
        co_return described("terminated: it printed too much", "");
    }
}

task<> serve_client(net::socket client, const settings& with, counting_semaphore<>& places) {
    constexpr std::size_t longest_request = 4096;
    try {
        buffered_reader reader{client};
        auto requests = reader.lines(longest_request);
        while (const auto request = co_await requests.next()) {
            std::string text;
            {
                const auto place = co_await places.acquire_guard();
                text = co_await answer(with, std::string(*request));
            }
            (co_await write_all(client, text)).value();
        }
        (co_await client.shutdown_write()).value();
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::operation_canceled) {
            throw; // the server is stopping
        }
        std::fprintf(stderr, "pstree_exec: %s\n", e.what());
    }
}

/// The options come before the port; everything after the port belongs to the command.
bool parse(int argc, char** argv, settings& with, std::uint16_t& port) {
    int words = 1;
    while (words < argc && std::string_view(argv[words]).starts_with("--")) {
        words += 2;
    }
    std::vector<std::string> others;
    if (words + 1 >= argc || !example::parse_number(argv[words], port) ||
        !example::read_options(
            words, argv,
            {{"--processes", with.processes}, {"--limit", with.limit}, {"--output", with.output}},
            others)) {
        return false;
    }
    with.command.assign(argv + words + 1, argv + argc);
    return others.empty() && with.processes > 0;
}

} // namespace

int main(int argc, char** argv) try {
    settings with;
    std::uint16_t port = 0;
    if (!parse(argc, argv, with, port)) {
        std::fprintf(stderr, "usage: pstree_exec [--processes N] [--limit MS] [--output BYTES] "
                             "PORT COMMAND [ARGUMENT...]\n");
        return 2;
    }
    const example::server_signals signals; // before threads are started
    const auto meter = std::make_shared<net::serve_meter>();
    counting_semaphore<> places(static_cast<std::ptrdiff_t>(with.processes));
    const auto session = [&](net::socket client) {
        return serve_client(std::move(client), with, places);
    };
    net::serve_options options{.max_connections = example::connections_for(1, 100),
                               .grace = 5s,
                               .on_listening = example::say_where,
                               .meter = meter};
    coil::run(example::run_until_stopped(
        net::serve(net::endpoint("127.0.0.1", port), session, std::move(options)), signals,
        [meter] { return to_string(meter->metrics()); }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "pstree_exec: %s\n", e.what());
    return 1;
}
