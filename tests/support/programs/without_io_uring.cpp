// without_io_uring [--errno EPERM|ENOSYS] PROGRAM [ARGUMENT...]: runs a program without io_uring,
// as in a container, by a seccomp filter that it and its children cannot remove. EPERM (the
// default) is the error of the filters of Docker, Podman and containerd, ENOSYS that of others and
// of kernels without io_uring.

#include "support/seccomp.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <unistd.h>

namespace {

constexpr unsigned io_uring_calls[] = {425, 426, 427}; // setup, enter, register

int usage() {
    std::fputs("usage: without_io_uring [--errno EPERM|ENOSYS] PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
}

} // namespace

int main(int argc, char** argv) {
    unsigned error = EPERM;
    int program = 1;
    if (argc > 2 && std::string_view(argv[1]) == "--errno") {
        const std::string_view name = argv[2];
        if (name != "EPERM" && name != "ENOSYS") {
            return usage();
        }
        error = name == "ENOSYS" ? ENOSYS : EPERM;
        program = 3;
    }
    if (program >= argc) {
        return usage();
    }
    for (const unsigned call : io_uring_calls) {
        if (!coil_test::forbid(call, error)) {
            std::fprintf(stderr, "without_io_uring: seccomp: %s\n", std::strerror(errno));
            return 2;
        }
    }
    ::execvp(argv[program], argv + program);
    std::fprintf(stderr, "without_io_uring: %s: %s\n", argv[program], std::strerror(errno));
    return 127;
}
