// Shared by the example servers: numeric options, limits, and running until a signal.
#pragma once

#include <coil/coil.hpp>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/resource.h>

namespace example {

using namespace coil;
using namespace std::chrono_literals;

template <class Number>
bool parse_number(std::string_view word, Number& number) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    return rest == end && error == std::errc();
}

/// An option with a number: a count, or a time in milliseconds.
class number_option {
public:
    number_option(std::string_view name, std::size_t& count) : name_(name), count_(&count) {}
    number_option(std::string_view name, std::chrono::milliseconds& time)
        : name_(name), time_(&time) {}

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] bool set(std::string_view word) const {
        std::size_t number = 0;
        if (!parse_number(word, number) || number > 1'000'000'000) {
            return false;
        }
        if (count_ != nullptr) {
            *count_ = number;
        } else {
            *time_ = std::chrono::milliseconds(number);
        }
        return true;
    }

private:
    std::string_view name_;
    std::size_t* count_ = nullptr;
    std::chrono::milliseconds* time_ = nullptr;
};

/// Reads the options "--NAME NUMBER" from the arguments of a program, and puts the other arguments
/// into `words`. Returns whether all options are known and valid.
inline bool read_options(int argc, char** argv, std::initializer_list<number_option> known,
                         std::vector<std::string>& words) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (!word.starts_with("--")) {
            words.emplace_back(word);
            continue;
        }
        bool valid = false;
        for (const number_option& option : known) {
            if (option.name() == word && i + 1 < argc) {
                valid = option.set(argv[++i]);
                break;
            }
        }
        if (!valid) {
            return false;
        }
    }
    return true;
}

/// Raises the limit of open descriptors as far as the system allows.
inline void use_all_descriptors() {
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/// The number of connections that the descriptor limit allows if each connection needs `each`
/// descriptors, and the rest of the program `others`.
inline std::size_t connections_for(std::size_t each, std::size_t others) {
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= others + each) {
        return 1;
    }
    return (limit.rlim_cur - others) / each;
}

/// Prints the text, and a newline unless the text ends with one.
inline void print_line(const std::string& text) {
    std::printf("%s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
    std::fflush(stdout);
}

inline void say_where(const net::endpoint& where) {
    print_line("listening on " + where.to_string());
}

inline task<> print_on_signal(const signal_set& signals, const std::function<std::string()>& text) {
    while (co_await signals.next() >= 0) {
        print_line(text());
    }
}

/// The signals of a server. Construct it in main(), before threads are started.
struct server_signals {
    signal_set stop{SIGINT, SIGTERM};
    signal_set report{SIGUSR1};
};

/// Runs a server until SIGINT or SIGTERM asks it to stop; returns when it has ended. Prints
/// `metrics` on SIGUSR1 and at the end.
inline task<> run_until_stopped(task<> server, const server_signals& signals,
                                std::function<std::string()> metrics) {
    co_await when_any(std::move(server), signals.stop.next(),
                      print_on_signal(signals.report, metrics));
    print_line(metrics());
}

} // namespace example
