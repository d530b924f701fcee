// Reads a file to its end: big_file VARIANT FILE BUFFER_KIB. VARIANT is "file" for fs::file::read,
// "string" for fs::read_file. Prints JSON.

#include "usage.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using coil::task;

task<std::size_t> by_pieces(const char* name, std::size_t buffer_bytes) {
    // Page-aligned like dd's buffer: unaligned, the kernel's copy is a third slower.
    std::vector<char> memory(buffer_bytes + 4096);
    void* place = memory.data();
    std::size_t room = memory.size();
    std::align(4096, buffer_bytes, place, room);
    const coil::mutable_buffer buffer(place, buffer_bytes);
    coil::fs::file f = co_await coil::fs::file::open(name);
    std::size_t bytes = 0;
    int n = 0;
    while ((n = co_await f.read(buffer)) > 0) {
        bytes += static_cast<std::size_t>(n);
    }
    co_return bytes;
}

task<std::size_t> as_string(const char* name) {
    const std::string all = co_await coil::fs::read_file(name);
    co_return all.size();
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: big_file file|string FILE BUFFER_KIB\n");
        return 2;
    }
    const bool in_pieces = std::string_view(argv[1]) == "file";
    const auto kib = static_cast<std::size_t>(std::atol(argv[3]));
    const auto before = std::chrono::steady_clock::now();
    const std::size_t bytes =
        coil::run(in_pieces ? by_pieces(argv[2], kib << 10) : as_string(argv[2]));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
    std::printf("{\"bytes\": %zu, \"seconds\": %.6f, \"cpu_s\": %.6f}\n", bytes, took.count(),
                usage::cpu_seconds());
}
