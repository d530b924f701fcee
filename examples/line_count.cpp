// Counts the lines of many files concurrently.
//
//     line_count *.cpp
//
// It shows a fan-out: the children of a scope share the list of files. A child that has finished a
// file takes the next one, so the number of children limits the number of open files. A child that
// fails, because a file is missing, cancels the others, and join() throws the child's exception.

#include <coil/coil.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;

namespace {

/// Owns a descriptor and closes it, even if an exception is thrown.
class file {
public:
    explicit file(int fd) noexcept : fd_(fd) {}
    file(const file&) = delete;
    file& operator=(const file&) = delete;
    ~file() { ::close(fd_); }
    operator int() const noexcept { return fd_; }

private:
    int fd_;
};

int checked(io_result result, const char* path) {
    if (result < 0) {
        throw std::system_error(result.error(), path);
    }
    return result;
}

task<> count_lines(const char* path, std::uint64_t& lines) {
    const int fd = checked(co_await io::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC), path);
    const file opened(fd);
    std::vector<char> buf(std::size_t{64} * 1024);
    while (const int n = checked(co_await io::read(opened, buf), path)) {
        lines += static_cast<std::uint64_t>(std::count(buf.begin(), buf.begin() + n, '\n'));
    }
}

/// All children run on the thread of their context, so `next` needs no lock.
task<> count_some(std::span<char* const> paths, std::size_t& next, std::span<std::uint64_t> lines) {
    while (next < paths.size()) {
        const std::size_t mine = next++;
        co_await count_lines(paths[mine], lines[mine]);
    }
}

task<std::vector<std::uint64_t>> count_all(std::span<char* const> paths) {
    constexpr std::size_t most_open = 64;
    std::vector<std::uint64_t> lines(paths.size());
    std::size_t next = 0;
    scope counting; // declared last: its children use the variables above
    for (std::size_t i = 0; i < std::min(most_open, paths.size()); ++i) {
        counting.spawn(count_some(paths, next, lines));
    }
    co_await counting.join();
    co_return lines;
}

} // namespace

int main(int argc, char** argv) try {
    const std::span<char* const> paths(argv + 1, static_cast<std::size_t>(std::max(argc - 1, 0)));
    if (paths.empty()) {
        std::fprintf(stderr, "usage: line_count FILE...\n");
        return 2;
    }
    const std::vector<std::uint64_t> lines = coil::run(count_all(paths));
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        std::printf("%llu %s\n", static_cast<unsigned long long>(lines[i]), paths[i]);
        total += lines[i];
    }
    if (paths.size() > 1) {
        std::printf("%llu total\n", static_cast<unsigned long long>(total));
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "line_count: %s\n", e.what());
    return 1;
}
