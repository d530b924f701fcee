// Reads all files of a tree into strings: small_files VARIANT DIRECTORY BYTES, where BYTES is their
// expected total size. Prints JSON.

#include "usage.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using coil::task;

std::vector<std::string> names;
constexpr int rounds = 5; // over all files, in one process

std::string by_iterators(const std::string& name) {
    std::ifstream in(name);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string by_stringstream(const std::string& name) {
    std::ifstream in(name);
    std::stringstream all;
    all << in.rdbuf();
    return std::move(all).str();
}

std::string by_size(const std::string& name) {
    std::ifstream in(name, std::ios::binary | std::ios::ate);
    std::string all(static_cast<std::size_t>(in.tellg()), '\0');
    in.seekg(0);
    in.read(all.data(), static_cast<std::streamsize>(all.size()));
    return all;
}

std::string by_calls(const std::string& name) {
    char buffer[32768];
    const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    std::string all;
    for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
        all.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(fd);
    return all;
}

template <class Read>
std::size_t each(Read read) {
    std::size_t bytes = 0;
    for (const std::string& name : names) {
        bytes += read(name).size();
    }
    return bytes;
}

task<> reader(std::size_t& next, std::size_t& bytes) {
    while (next < names.size()) {
        const std::string text = co_await coil::fs::read_file(names[next++]);
        bytes += text.size();
    }
}

std::size_t by_coil(int at_once) {
    std::size_t next = 0;
    std::size_t bytes = 0;
    coil::io_context context;
    for (int i = 0; i < at_once; ++i) {
        context.co_spawn(reader(next, bytes));
    }
    context.run();
    return bytes;
}

std::size_t read_all(std::string_view variant) {
    if (variant == "iterators") {
        return each(by_iterators);
    }
    if (variant == "stringstream") {
        return each(by_stringstream);
    }
    if (variant == "size") {
        return each(by_size);
    }
    if (variant == "calls") {
        return each(by_calls);
    }
    if (variant == "coil") {
        return by_coil(1);
    }
    if (variant == "coil32") {
        return by_coil(32);
    }
    std::fprintf(stderr, "the variant is one of iterators stringstream size calls coil coil32\n");
    std::exit(2);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: small_files VARIANT DIRECTORY BYTES\n");
        return 2;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[2])) {
        if (entry.is_regular_file()) {
            names.push_back(entry.path().string());
        }
    }
    const auto expected = static_cast<std::size_t>(std::atoll(argv[3]));
    double best = 1e9;
    double cpu = 0;
    for (int i = 0; i <= rounds; ++i) {
        const double cpu_before = usage::cpu_seconds();
        const auto before = std::chrono::steady_clock::now();
        if (read_all(argv[1]) != expected) {
            std::fprintf(stderr, "not everything was read\n");
            return 1;
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
        if (i > 0 && took.count() < best) { // the first round warms up
            best = took.count();
            cpu = usage::cpu_seconds() - cpu_before;
        }
    }
    const auto count = static_cast<double>(names.size());
    std::printf("{\"files_per_s\": %.1f, \"us_per_file\": %.4f, \"cpu_us_per_file\": %.4f}\n",
                count / best, best / count * 1e6, cpu / count * 1e6);
}
