#pragma once

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace coil_test {

/// What a function prints on stderr before it aborts, in a child of this process.
inline std::string printed_by_the_death_of(const std::function<void()>& f) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    std::fflush(nullptr);
    const ::pid_t child = ::fork();
    if (child == 0) {
        const ::rlimit no_core{};
        ::setrlimit(RLIMIT_CORE, &no_core);
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        ::alarm(120);
        f();
        std::fputs("it has not ended\n", stderr);
        std::_Exit(0);
    }
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> part{};
    while (const auto n = ::read(ends[0], part.data(), part.size())) {
        if (n < 0) {
            break;
        }
        text.append(part.data(), static_cast<std::size_t>(n));
    }
    ::close(ends[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status << '\n' << text;
    return text;
}

} // namespace coil_test
