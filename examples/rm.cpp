// Deletes files, and with -r directories and their contents, like rm(1):
//
//     rm -r build dist
//
// It shows fs::remove and fs::remove_all: several directories of a tree are processed concurrently,
// symbolic links are never followed, and Ctrl-C cancels the work.

#include <coil/coil.hpp>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;

namespace {

constexpr const char* usage = "usage: rm [-fr] FILE...\n"
                              "  -r  remove directories and their contents recursively\n"
                              "  -f  ignore files that do not exist\n";

struct arguments {
    bool recursive = false;
    bool force = false;
    std::vector<fs::path> files;
};

/// Refuses "." and "..", which are probably mistakes, and "/", which certainly is one.
bool is_refused(const fs::path& p) {
    const fs::path name = (p.has_filename() ? p : p.parent_path()).filename();
    return name == "." || name == ".." || p.lexically_normal() == "/";
}

task<> remove_one(fs::path p, bool recursive, bool force) {
    if (is_refused(p)) {
        throw fs::filesystem_error("refused", p, std::make_error_code(std::errc::invalid_argument));
    }
    if (recursive) {
        const auto count = co_await fs::remove_all(p);
        if (count == 0 && !force) {
            throw fs::filesystem_error("cannot remove", p,
                                       std::make_error_code(std::errc::no_such_file_or_directory));
        }
        co_return;
    }
    const int result = co_await io::unlinkat(AT_FDCWD, p.c_str(), 0);
    if (result < 0 && !(force && result == -ENOENT)) {
        throw fs::filesystem_error("cannot remove", p, io_result(result).error());
    }
}

task<int> remove_files(arguments args) {
    int status = 0;
    for (const fs::path& p : args.files) {
        try {
            co_await remove_one(p, args.recursive, args.force);
        } catch (const fs::filesystem_error& e) {
            const fs::path& what = e.path2().empty() ? e.path1() : e.path2();
            std::fprintf(stderr, "rm: %s: %s\n", what.c_str(), e.code().message().c_str());
            status = 1;
        }
    }
    co_return status;
}

} // namespace

int main(int argc, char** argv) try {
    arguments args;
    for (int option; (option = ::getopt(argc, argv, "frRh-")) != -1;) {
        switch (option) {
        case 'f':
            args.force = true;
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
    args.files.assign(argv + optind, argv + argc);
    if (args.files.empty() && !args.force) {
        std::fputs(usage, stderr);
        return 2;
    }
    return coil::run(remove_files(std::move(args)));
} catch (const std::exception& e) {
    std::fprintf(stderr, "rm: %s\n", e.what());
    return 1;
}
