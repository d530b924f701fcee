// main TEST.so [ARGUMENT...]: calls the main() of a shared library and ends with its result, or
// with 1 if an assertion failed.

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

namespace {

std::atomic<bool> has_failed{false}; // a test may have threads

} // namespace

/// include/assert.h calls it.
extern "C" void coil_report_failure(const char* what, const char* file, int line) noexcept;
extern "C" void coil_report_failure(const char* what, const char* file, int line) noexcept {
    has_failed = true;
    std::fprintf(stderr, "FAILED %s:%d: %s\n", file, line, what);
}

int main(int argc, char** argv) {
    void* const test = argc < 2 ? nullptr : ::dlopen(argv[1], RTLD_NOW);
    void* const entry = test == nullptr ? nullptr : ::dlsym(test, "main");
    if (entry == nullptr) {
        std::fprintf(stderr, "%s\n", argc < 2 ? "usage: main TEST.so" : ::dlerror());
        return 2;
    }
    const int status = reinterpret_cast<int (*)(int, char**)>(entry)(argc - 1, argv + 1);
    return has_failed ? EXIT_FAILURE : status;
}
