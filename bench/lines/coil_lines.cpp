// Reads the lines of a file with buffered_reader::lines(). `coil_lines FILE [SIZE]`: like raw_lines

#include <coil/coil.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>

using namespace coil;

namespace {

task<> count(const char* path, std::size_t size) {
    fs::file file = co_await fs::file::open(path);
    buffered_reader in(file, size);
    auto lines = in.lines();
    unsigned long number = 0;
    unsigned long bytes = 0;
    unsigned long first = 0;
    while (const auto line = co_await lines.next()) {
        ++number;
        bytes += line->size();
        first += line->empty() ? 0 : static_cast<unsigned char>(line->front());
    }
    std::printf("%lu %lu %lu\n", number, bytes, first);
}

} // namespace

int main(int argc, char** argv) try {
    if (argc != 2 && argc != 3) {
        std::fprintf(stderr, "usage: coil_lines FILE [SIZE]\n");
        return 2;
    }
    const std::size_t size = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 65536;
    coil::run(count(argv[1], size));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "coil_lines: %s\n", e.what());
    return 1;
}
