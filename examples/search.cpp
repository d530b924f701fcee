// Prints the lines of files that contain a text, like grep -rn:
//
//     search TODO src include
//     search -e 'co_(await|yield) ' examples
//
// It shows a pipeline: a walk finds files and sends their names through a channel to a fixed number
// of coroutines, which read the files. This limits the number of open files. The lines of one file
// are printed together. Files that contain a zero byte are not text and are skipped.

#include <coil/coil.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;

namespace {

constexpr const char* usage = "usage: search [-ei] TEXT [FILE...]\n"
                              "  -e  TEXT is an ECMAScript regular expression\n"
                              "  -i  ignore case\n"
                              "exit status: 0 if a line was found, 1 if none, 2 on errors\n";

struct arguments {
    bool is_expression = false;
    bool ignores_case = false;
    std::string text;
    std::vector<std::string> files;
};

class pattern {
public:
    explicit pattern(const arguments& args) : text_(args.text) {
        if (args.is_expression || args.ignores_case) {
            auto flags = std::regex::ECMAScript | std::regex::optimize;
            if (args.ignores_case) {
                flags |= std::regex::icase;
            }
            expression_.emplace(args.is_expression ? args.text : quoted(args.text), flags);
        }
    }

    [[nodiscard]] bool is_in(std::string_view line) const {
        return expression_ ? std::regex_search(line.begin(), line.end(), *expression_)
                           : line.find(text_) != std::string_view::npos;
    }
    /// Returns false if no line of `all` can match.
    [[nodiscard]] bool may_be_in(std::string_view all) const {
        return expression_ || all.find(text_) != std::string_view::npos;
    }

private:
    static std::string quoted(const std::string& text) {
        std::string safe;
        for (const char c : text) {
            if (std::string_view("^$\\.*+?()[]{}|").find(c) != std::string_view::npos) {
                safe += '\\';
            }
            safe += c;
        }
        return safe;
    }

    std::string text_;
    std::optional<std::regex> expression_;
};

struct result {
    bool found = false;
    bool failed = false;
};

void complain(const std::string& file, const std::error_code& error, result& r) {
    std::fprintf(stderr, "search: %s: %s\n", file.c_str(), error.message().c_str());
    r.failed = true;
}

/// Returns an empty string for a file that is not text.
task<std::string> read_text(std::string file, std::error_code& ec) {
    std::string text;
    const int fd = co_await io::openat(AT_FDCWD, file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        ec = io_result(fd).error();
        co_return text;
    }
    std::size_t size = 0;
    for (;;) {
        text.resize(std::max<std::size_t>(size * 2, std::size_t{64} * 1024));
        const int n = co_await io::read(fd, {text.data() + size, text.size() - size});
        if (n <= 0) {
            ec = n < 0 ? io_result(n).error() : std::error_code();
            break;
        }
        const std::string_view piece(text.data() + size, static_cast<std::size_t>(n));
        if (piece.find('\0') != std::string_view::npos) {
            size = 0;
            break;
        }
        size += piece.size();
    }
    co_await io::close(fd);
    text.resize(size);
    co_return text;
}

void print_lines(const std::string& file, std::string_view text, const pattern& what, result& r) {
    if (!what.may_be_in(text)) {
        return;
    }
    for (int number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (what.is_in(line)) {
            std::printf("%s:%d:%.*s\n", file.c_str(), number, static_cast<int>(line.size()),
                        line.data());
            r.found = true;
        }
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
}

task<> search_files(channel<std::string>& files, const pattern& what, result& r) {
    while (auto file = co_await files.recv()) {
        std::error_code ec;
        const std::string text = co_await read_text(*file, ec);
        if (ec) {
            complain(*file, ec, r);
        } else {
            print_lines(*file, text, what, r);
        }
    }
}

task<> find_files(std::vector<std::string> tops, channel<std::string>& files, result& r) {
    for (const std::string& top : tops) {
        std::error_code ec;
        auto tree = fs::walk(top, fs::directory_options::skip_permission_denied, ec);
        while (auto entry = co_await tree.next()) {
            if (entry->is_regular_file()) {
                co_await files.send(entry->path().native());
            }
        }
        if (ec == std::errc::not_a_directory) {
            co_await files.send(top);
        } else if (ec) {
            complain(top, ec, r);
        }
    }
    files.close();
}

task<result> search(arguments args) {
    constexpr int at_once = 32;
    const pattern what(args);
    result r;
    channel<std::string> files(at_once);
    scope searching; // declared after what its children refer to
    for (int i = 0; i < at_once; ++i) {
        searching.spawn(search_files(files, what, r));
    }
    searching.spawn(find_files(args.files, files, r));
    co_await searching.join();
    co_return r;
}

} // namespace

int main(int argc, char** argv) try {
    arguments args;
    for (int option; (option = ::getopt(argc, argv, "eih-")) != -1;) {
        switch (option) {
        case 'e':
            args.is_expression = true;
            break;
        case 'i':
            args.ignores_case = true;
            break;
        case 'h':
        case '-':
            std::fputs(usage, stdout);
            return 0;
        default:
            std::fputs(usage, stderr);
            return 2;
        }
    }
    if (optind == argc) {
        std::fputs(usage, stderr);
        return 2;
    }
    args.text = argv[optind];
    args.files.assign(argv + optind + 1, argv + argc);
    if (args.files.empty()) {
        args.files.emplace_back(".");
    }
    const result r = coil::run(search(std::move(args)));
    if (std::fflush(stdout) != 0) {
        std::perror("search: write error");
        return 2;
    }
    return r.failed ? 2 : r.found ? 0 : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "search: %s\n", e.what());
    return 2;
}
