// Prints the disk usage of files and directories, like du(1):
//
//     du -h ~/src        each directory in the tree
//     du -sh build dist  only the totals
//
// It shows fs::walk: entries arrive in batches together with their statx(2) results, so most awaits
// here do not suspend.

#include <coil/coil.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace coil;

namespace {

constexpr const char* usage = "usage: du [-sh] [FILE...]\n"
                              "  -s  print only the total of each FILE\n"
                              "  -h  print K, M, G and T instead of KiB\n";

struct arguments {
    bool only_sums = false;
    bool readable = false;
    std::vector<std::string> files;
};

/// Counts a file with several hard links once, even across arguments.
class counted_once {
public:
    bool is_new(const struct ::stat& s) {
        return s.st_nlink < 2 || S_ISDIR(s.st_mode) || seen_.emplace(s.st_dev, s.st_ino).second;
    }

private:
    std::set<std::pair<::dev_t, ::ino_t>> seen_;
};

void print(std::uintmax_t blocks, const std::string& name, bool readable) {
    const std::uintmax_t kib = (blocks + 1) / 2;
    if (!readable) {
        std::printf("%ju\t%s\n", kib, name.c_str());
        return;
    }
    double size = static_cast<double>(kib);
    const char* unit = "KMGT";
    for (; size >= 1024 && unit[1] != '\0'; ++unit) {
        size /= 1024;
    }
    std::printf("%.*f%c\t%s\n", size < 10 && *unit != 'K' ? 1 : 0, size, *unit, name.c_str());
}

task<> sum_up(std::string top, const arguments& args, counted_once& counted) {
    struct ::stat own{};
    if (::lstat(top.c_str(), &own) != 0) {
        throw fs::filesystem_error("cannot read", top,
                                   std::error_code(errno, std::generic_category()));
    }
    std::map<std::string, std::uintmax_t> sums; // of directories, including their contents
    std::uintmax_t all = counted.is_new(own) ? static_cast<std::uintmax_t>(own.st_blocks) : 0;
    if (S_ISDIR(own.st_mode)) {
        fs::walk_options options;
        options.with_metadata = true;
        auto tree = fs::walk(top, options);
        while (auto entry = co_await tree.next()) {
            std::error_code vanished;
            const struct ::stat s = co_await entry->lstat(vanished);
            if (vanished || !counted.is_new(s)) {
                continue;
            }
            all += static_cast<std::uintmax_t>(s.st_blocks);
            if (args.only_sums) {
                continue;
            }
            // Add to every directory above the entry, and to the entry itself if it is a directory.
            fs::path in = entry->path();
            if (!entry->is_directory()) {
                in = in.parent_path();
            }
            for (int depth = entry->depth() + (entry->is_directory() ? 1 : 0); depth > 0; --depth) {
                sums[in.native()] += static_cast<std::uintmax_t>(s.st_blocks);
                in = in.parent_path();
            }
        }
    }
    for (auto i = sums.rbegin(); i != sums.rend(); ++i) {
        print(i->second, i->first, args.readable);
    }
    print(all, top, args.readable);
}

task<int> disk_usage(arguments args) {
    int status = 0;
    counted_once counted;
    for (const std::string& file : args.files) {
        try {
            co_await sum_up(file, args, counted);
        } catch (const fs::filesystem_error& e) {
            const fs::path& what = e.path2().empty() ? e.path1() : e.path2();
            std::fprintf(stderr, "du: %s: %s\n", what.c_str(), e.code().message().c_str());
            status = 1;
        }
    }
    co_return status;
}

} // namespace

int main(int argc, char** argv) try {
    arguments args;
    for (int option; (option = ::getopt(argc, argv, "sh-")) != -1;) {
        switch (option) {
        case 's':
            args.only_sums = true;
            break;
        case 'h':
            args.readable = true;
            break;
        case '-':
            std::fputs(usage, stdout);
            return 0;
        default:
            std::fputs(usage, stderr);
            return 2;
        }
    }
    args.files.assign(argv + optind, argv + argc);
    if (args.files.empty()) {
        args.files.emplace_back(".");
    }
    const int status = coil::run(disk_usage(std::move(args)));
    if (std::fflush(stdout) != 0) {
        std::perror("du: write error");
        return 1;
    }
    return status;
} catch (const std::exception& e) {
    std::fprintf(stderr, "du: %s\n", e.what());
    return 1;
}
