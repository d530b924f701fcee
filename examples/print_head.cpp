// Prints the first lines, or bytes, of files, like head(1):
//
//     print_head -n 3 /etc/passwd /etc/group
//     print_head -c 16 /bin/ls | od -c
//
// It shows files: openat, read, write and close are the system calls of these names, used with
// co_await. They return what Linux returns, a number or -errno.

#include <coil/coil.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;

namespace {

/// How much of each file to print.
struct portion {
    unsigned long long lines = 10;
    std::optional<unsigned long long> bytes;

    /// Returns how much of `text` to print and subtracts it.
    std::size_t take(std::string_view text) {
        if (bytes) {
            const std::size_t n = std::min<unsigned long long>(*bytes, text.size());
            *bytes -= n;
            return n;
        }
        std::size_t n = 0;
        while (lines > 0 && n < text.size()) {
            const std::size_t newline = text.find('\n', n);
            if (newline == text.npos) {
                return text.size();
            }
            --lines;
            n = newline + 1;
        }
        return n;
    }

    [[nodiscard]] bool complete() const { return bytes ? *bytes == 0 : lines == 0; }
};

task<> write_all(std::string_view text) {
    while (!text.empty()) {
        const int n = (co_await io::write(STDOUT_FILENO, text)).value();
        text.remove_prefix(static_cast<std::size_t>(n));
    }
}

/// Returns 0, or -errno if reading failed. Throws if writing fails.
task<int> print_descriptor(int fd, portion rest) {
    std::array<char, 16384> buf;
    while (!rest.complete()) {
        const int n = co_await io::read(fd, buf);
        if (n <= 0) {
            co_return n;
        }
        const std::string_view text(buf.data(), static_cast<std::size_t>(n));
        co_await write_all(text.substr(0, rest.take(text)));
    }
    co_return 0;
}

task<int> print_file(const char* name, portion what, bool with_title) {
    const bool standard_input = std::strcmp(name, "-") == 0;
    int fd = STDIN_FILENO;
    if (!standard_input) {
        fd = co_await io::openat(AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            co_return fd;
        }
    }
    if (with_title) {
        static bool first = true;
        const std::string title = standard_input ? "standard input" : name;
        co_await write_all((first ? "==> " : "\n==> ") + title + " <==\n");
        first = false;
    }
    const int result = co_await print_descriptor(fd, what);
    if (!standard_input) {
        co_await io::close(fd);
    }
    co_return result;
}

task<int> print_files(int count, char** names, portion what) {
    int status = 0;
    for (int i = 0; i < count; ++i) {
        if (const int error = co_await print_file(names[i], what, count > 1); error < 0) {
            std::fprintf(stderr, "print_head: %s: %s\n", names[i], std::strerror(-error));
            status = 1;
        }
    }
    co_return status;
}

std::optional<portion> parse(int argc, char** argv) {
    portion what;
    for (int option; (option = ::getopt(argc, argv, "n:c:")) != -1;) {
        if (option == '?') {
            return std::nullopt;
        }
        unsigned long long number = 0;
        const char* const end = optarg + std::strlen(optarg);
        const auto [rest, error] = std::from_chars(optarg, end, number);
        if (rest != end || error != std::errc()) {
            return std::nullopt;
        }
        what.lines = number;
        what.bytes = option == 'c' ? std::optional(number) : std::nullopt;
    }
    return optind < argc ? std::optional(what) : std::nullopt;
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<portion> what = parse(argc, argv);
    if (!what) {
        std::fprintf(stderr, "usage: print_head [-n LINES | -c BYTES] FILE...\n");
        return 2;
    }
    return coil::run(print_files(argc - optind, argv + optind, *what));
} catch (const std::exception& e) {
    std::fprintf(stderr, "print_head: %s\n", e.what());
    return 1;
}
