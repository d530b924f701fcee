// The command line of netcat.
#pragma once

#include "tls.hpp"

#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

#include <getopt.h>
#include <unistd.h>

namespace netcat {

struct arguments {
    bool listen = false;
    bool local = false; // a Unix socket; `port` is its path
    bool keep = false;  // accept further connections
    bool datagrams = false;
    tls_options tls;
    std::string command;
    std::chrono::seconds backoff = std::chrono::years(1);
    std::string host = "0.0.0.0";
    std::string port;
};

inline bool parse_seconds(const char* word, std::chrono::seconds& time) {
    int seconds = 0;
    const char* const end = word + std::strlen(word);
    const auto [rest, error] = std::from_chars(word, end, seconds);
    time = std::chrono::seconds(seconds);
    return error == std::errc() && rest == end && seconds > 0;
}

/// Whether the options make sense together.
inline bool valid(const arguments& args) {
    const tls_options& tls = args.tls;
    const bool has_files = !tls.certificate.empty() && !tls.key.empty();
    const bool has_any_file = !tls.certificate.empty() || !tls.key.empty();
    if (args.keep && !args.listen) {
        return false;
    }
    if (args.datagrams && (args.local || args.keep || tls.enabled || !args.command.empty())) {
        return false;
    }
    if (!tls.enabled) {
        return !has_any_file && !tls.unverified;
    }
    if (args.local || !args.command.empty()) {
        return false;
    }
    return args.listen ? has_files && !tls.unverified : !has_any_file;
}

inline std::optional<arguments> parse(int argc, char** argv) {
    enum { tls = 256, unverified, certificate, key };
    static constexpr ::option long_options[] = {{"tls", no_argument, nullptr, tls},
                                                {"unverified", no_argument, nullptr, unverified},
                                                {"cert", required_argument, nullptr, certificate},
                                                {"key", required_argument, nullptr, key},
                                                {nullptr, 0, nullptr, 0}};
    arguments args;
    for (int option;
         (option = ::getopt_long(argc, argv, "e:klUuw:", long_options, nullptr)) != -1;) {
        switch (option) {
        case 'l':
            args.listen = true;
            break;
        case 'U':
            args.local = true;
            break;
        case 'u':
            args.datagrams = true;
            break;
        case 'k':
            args.keep = true;
            break;
        case 'e':
            args.command = optarg;
            break;
        case tls:
            args.tls.enabled = true;
            break;
        case unverified:
            args.tls.unverified = true;
            break;
        case certificate:
            args.tls.certificate = optarg;
            break;
        case key:
            args.tls.key = optarg;
            break;
        case 'w':
            if (parse_seconds(optarg, args.backoff)) {
                break;
            }
            return std::nullopt;
        default:
            return std::nullopt;
        }
    }
    const int words = argc - optind;
    if (!valid(args) || (args.local ? words != 1 : words != 2 && !(args.listen && words == 1))) {
        return std::nullopt;
    }
    if (words == 2) {
        args.host = argv[optind];
    }
    args.port = argv[argc - 1];
    return args;
}

inline constexpr const char* usage =
    "usage: netcat [-w SECONDS] [-e COMMAND] HOST PORT\n"
    "       netcat [-w SECONDS] [-e COMMAND] -l [-k] [HOST] PORT\n"
    "       netcat [-w SECONDS] [-e COMMAND] [-l [-k]] -U PATH\n"
    "       netcat [-w SECONDS] -u HOST PORT | -u -l [HOST] PORT\n"
    "       netcat [-w SECONDS] --tls [--unverified] HOST PORT\n"
    "       netcat [-w SECONDS] --tls --cert FILE --key FILE -l [-k] [HOST] PORT\n";

} // namespace netcat
