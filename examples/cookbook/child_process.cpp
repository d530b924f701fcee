// Start a program, read its output, and wait for its end.
#include <coil/coil.hpp>

#include <cstdio>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace coil;

task<> co_main() {
    int ends[2];
    (co_await io::pipe2(ends, O_CLOEXEC)).value();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    char name[] = "echo", argument[] = "hello";
    char* arguments[] = {name, argument, nullptr};
    pid_t child = 0;
    const int error = posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    co_await io::close(ends[1]);
    char buf[256];
    for (int n = 0; error == 0 && (n = co_await io::read(ends[0], buf)) > 0;) {
        std::printf("it says: %.*s", n, buf);
    }
    co_await io::close(ends[0]);
    siginfo_t info{};
    if (error == 0 && co_await io::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED) == 0) {
        std::printf("it ended with %d\n", info.si_status);
    }
}

int main() { coil::run(co_main()); }
