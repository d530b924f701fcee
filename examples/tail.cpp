// tail FILE: prints what is in a file and then, for ever, what is added to it, as `tail -f -n +1`
// does. When the file is replaced (a log was rotated), the new one is followed.

#include <coil/coil.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;

namespace {

/// Standard output as a sink: what is a file, a pipe or a terminal is written in the same way.
class output {
public:
    auto write_some(const_buffer data) { return io::write(STDOUT_FILENO, data); }
    task<io_result> shutdown_write() { co_return io_result(0); }
};

/// The file under that name, if there is one.
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
    // Before the file is opened: what happens in between is not missed.
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
                co_await copy(file, out); // the rest of the old one
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
