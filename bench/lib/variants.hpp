// Arguments of programs with several variants: VARIANT COUNT CPU CPU.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace variants {

struct options {
    std::string_view variant;
    long count = 0;
    int cpus[2] = {-1, -1};
};

inline options parse(int argc, char** argv, const char* names) {
    options o;
    if (argc == 5) {
        o.variant = argv[1];
        o.count = std::atol(argv[2]);
        o.cpus[0] = std::atoi(argv[3]);
        o.cpus[1] = std::atoi(argv[4]);
    }
    if (o.count <= 0) {
        std::fprintf(stderr, "usage: %s %s COUNT CPU CPU\n", argv[0], names);
        std::exit(2);
    }
    return o;
}

[[noreturn]] inline void unknown(const char* names) {
    std::fprintf(stderr, "the variant is one of %s\n", names);
    std::exit(2);
}

} // namespace variants
