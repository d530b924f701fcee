// Resources used by this process: CPU time and memory.
#pragma once

#include <cstdio>

#include <time.h>

namespace usage {

// Includes all threads and the io-wq workers of their rings.
inline double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Resident private memory in bytes; -1 if the kernel does not report it.
inline long private_bytes() {
    std::FILE* file = std::fopen("/proc/self/smaps_rollup", "r");
    if (file == nullptr) {
        return -1;
    }
    long total = 0;
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        long kib = 0;
        if (std::sscanf(line, "Private_Clean: %ld", &kib) == 1 ||
            std::sscanf(line, "Private_Dirty: %ld", &kib) == 1) {
            total += kib * 1024;
        }
    }
    std::fclose(file);
    return total;
}

} // namespace usage
