// tail FILE: prints a file and then everything that is appended to it, like `tail -F -n +1`. If the
// file is replaced, as in a log rotation, tail continues with the new file.

#include <coil/coil.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

using namespace coil;

namespace {

/// Standard output as a byte_sink: a file, a pipe or a terminal.
class output {
public:
    auto write_some(const_buffer data) { return io::write(STDOUT_FILENO, data); }
    task<io_result> shutdown_write() { co_return io_result(0); }
};

/// Opens the file with this name, if there is one.
task<fs::file> open_if_there(fs::path p) {
    std::error_code ec;
    fs::file file = co_await fs::file::open(p, O_RDONLY, ec);
    if (ec && ec != std::errc::no_such_file_or_directory) {
        throw std::filesystem::filesystem_error("tail", p, ec);
    }
    co_return file;
}

task<> follow(fs::path p) {
    const fs::path parent = p.has_parent_path() ? p.parent_path() : fs::path(".");
    // Created before the file is opened, so no change is missed.
    fs::watcher changes = fs::watch(parent, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
    fs::file file = co_await open_if_there(p);
    output out;
    for (;;) {
        if (file) {
            co_await copy(file, out);
        }
        const auto change = co_await changes.next();
        if (!change) {
            co_return;
        }
        const bool is_new = (change->mask & (IN_CREATE | IN_MOVED_TO)) != 0;
        if (is_new && change->name == p.filename()) {
            if (file) {
                co_await copy(file, out); // the rest of the old file
            }
            file = co_await open_if_there(p);
        }
    }
}

} // namespace

int main(int argc, char** argv) try {
    if (argc != 2) {
        std::fprintf(stderr, "usage: tail FILE\n");
        return 2;
    }
    coil::run(follow(argv[1]));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "tail: %s\n", e.what());
    return 1;
}
