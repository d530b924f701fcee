// Copies files, and with -r directories, like cp(1), and shows the progress:
//
//     cp -r photos /media/backup
//     cp -a src src.before
//
// It shows fs::copy_tree: several files are copied concurrently, by the kernel if possible, and the
// context can do other work meanwhile, such as reporting the progress.

#include <coil/coil.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

using namespace coil;

namespace {

constexpr const char* usage = "usage: cp [-apr] FILE... TARGET\n"
                              "  -r  copy directories recursively; keep symbolic links\n"
                              "  -p  preserve times and owners\n"
                              "  -a  both\n";

struct arguments {
    bool recursive = false;
    bool keep = false;
    std::vector<fs::path> files;
    fs::path target;
};

/// A line on the terminal that is overwritten ten times a second.
class progress_line {
public:
    void show(const fs::copy_progress& now) {
        const auto time = std::chrono::steady_clock::now();
        if (!is_terminal_ || time < next_) {
            return;
        }
        next_ = time + std::chrono::milliseconds(100);
        const double seconds = std::chrono::duration<double>(time - begin_).count();
        const double mib = static_cast<double>(now.bytes) / (1024 * 1024);
        std::fprintf(stderr, "\r%ju files, %.1f MiB, %.1f MiB/s \033[K", now.entries, mib,
                     mib / seconds);
        shown_ = true;
    }
    void clear() {
        if (shown_) {
            std::fputs("\r\033[K", stderr);
        }
    }

private:
    const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point next_ = begin_ + std::chrono::milliseconds(500);
    bool shown_ = false;
};

task<> copy_one(fs::path from, fs::path to, const arguments& args, progress_line& line) {
    const bool is_directory =
        co_await blocking([&] { return std::filesystem::is_directory(from); });
    if (!args.recursive && is_directory) {
        throw fs::filesystem_error("directory", from, to,
                                   std::make_error_code(std::errc::is_a_directory));
    }
    fs::copy_tree_options options;
    options.options = fs::copy_options::overwrite_existing;
    if (args.recursive) {
        options.options |= fs::copy_options::recursive | fs::copy_options::copy_symlinks;
    }
    options.times = args.keep;
    options.owner = args.keep;
    options.progress = [&line](const fs::copy_progress& now) { line.show(now); };
    co_await fs::copy_tree(from, to, std::move(options));
}

task<int> copy_files(arguments args) {
    const bool into = co_await blocking([&] { return std::filesystem::is_directory(args.target); });
    if (args.files.size() > 1 && !into) {
        std::fprintf(stderr, "cp: %s: not a directory\n", args.target.c_str());
        co_return 1;
    }
    int status = 0;
    progress_line line;
    for (const fs::path& from : args.files) {
        const fs::path name = (from.has_filename() ? from : from.parent_path()).filename();
        const fs::path to = into ? args.target / name : args.target;
        try {
            co_await copy_one(from, to, args, line);
        } catch (const fs::filesystem_error& e) {
            line.clear();
            std::fprintf(stderr, "cp: %s to %s: %s\n", e.path1().c_str(), e.path2().c_str(),
                         e.code().message().c_str());
            status = 1;
        }
    }
    line.clear();
    co_return status;
}

} // namespace

int main(int argc, char** argv) try {
    arguments args;
    for (int option; (option = ::getopt(argc, argv, "aprRh-")) != -1;) {
        switch (option) {
        case 'a':
            args.recursive = args.keep = true;
            break;
        case 'p':
            args.keep = true;
            break;
        case 'r':
        case 'R':
            args.recursive = true;
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
    if (argc - optind < 2) {
        std::fputs(usage, stderr);
        return 2;
    }
    args.files.assign(argv + optind, argv + argc - 1);
    args.target = argv[argc - 1];
    return coil::run(copy_files(std::move(args)));
} catch (const std::exception& e) {
    std::fprintf(stderr, "cp: %s\n", e.what());
    return 1;
}
