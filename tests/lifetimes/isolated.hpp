#pragma once

#include "support/run.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

// A test whose program may hang, crash or exhaust the stack runs in a separate process: the test
// program executes itself with a filter for this one test and checks how the child ends.

namespace lifetime_test {

using namespace std::chrono_literals;

/// Set in the child.
inline constexpr const char* child_variable = "COIL_LIFETIME_CHILD";
inline bool is_child() { return std::getenv(child_variable) != nullptr; }

/// A child that runs longer than this counts as hanging.
inline constexpr std::chrono::seconds child_limit{coil_test::sanitized ? 60 : 20};

/// How the child ended.
struct child_end {
    bool timed_out = false;
    int status = 0;
    std::string output;

    [[nodiscard]] bool succeeded() const {
        return !timed_out && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    [[nodiscard]] std::string sentence() const {
        if (timed_out) {
            return "it hangs";
        }
        if (WIFSIGNALED(status)) {
            return std::string("it was ended by: ") + ::strsignal(WTERMSIG(status));
        }
        return "it ended with exit status " + std::to_string(WEXITSTATUS(status));
    }
};

namespace detail {

/// Uses only what may be called between fork() and exec() in a program with threads.
[[noreturn]] inline void become_child(int output, char* const* arguments,
                                      char* const* environment) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    ::execve("/proc/self/exe", arguments, environment);
    ::_exit(126);
}

inline std::vector<std::string> child_environment() {
    std::vector<std::string> all;
    for (char** each = ::environ; *each != nullptr; ++each) {
        const std::string_view variable = *each;
        // The report and the sharding of tests belong to the parent.
        if (!variable.starts_with("GTEST_") && !variable.starts_with("TEST_")) {
            all.emplace_back(variable);
        }
    }
    all.push_back(std::string(child_variable) + "=1");
    return all;
}

inline std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> all;
    for (std::string& each : strings) {
        all.push_back(each.data());
    }
    all.push_back(nullptr);
    return all;
}

} // namespace detail

/// Executes this program again for the single test `name`.
inline child_end run_child(const std::string& name) {
    std::vector<std::string> arguments{"test", "--gtest_filter=" + name, "--gtest_color=no"};
    std::vector<std::string> environment = detail::child_environment();
    const std::vector<char*> argv = detail::pointers(arguments);
    const std::vector<char*> envp = detail::pointers(environment);
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    const pid_t child = ::fork();
    if (child < 0) {
        throw std::system_error(errno, std::generic_category(), "fork");
    }
    if (child == 0) {
        detail::become_child(fds[1], argv.data(), envp.data());
    }
    ::close(fds[1]);
    child_end end;
    const auto until = std::chrono::steady_clock::now() + child_limit;
    for (char buffer[4096];;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now());
        ::pollfd readable{fds[0], POLLIN, 0};
        const int ready = left.count() <= 0 ? 0 : ::poll(&readable, 1, int(left.count()));
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        const ssize_t n = ready > 0 ? ::read(fds[0], buffer, sizeof buffer) : 0;
        if (n > 0) {
            end.output.append(buffer, static_cast<std::size_t>(n));
            continue;
        }
        if (ready == 0) {
            end.timed_out = true;
            ::kill(child, SIGKILL);
        }
        break;
    }
    ::close(fds[0]);
    ::waitpid(child, &end.status, 0);
    return end;
}

inline std::string name_of_running_test() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    return std::string(test.test_suite_name()) + "." + test.name();
}

/// Runs `program` in a separate process. Fails with the child's output if that fails, dies or
/// hangs.
inline void isolated(const std::function<void()>& program) {
    if (is_child()) {
        program();
        return;
    }
    const child_end end = run_child(name_of_running_test());
    EXPECT_TRUE(end.succeeded()) << end.sentence() << "; its output:\n" << end.output;
}

/// The same for a program that the library must terminate by abort() with `sentence`.
inline void isolated_misuse(const std::function<void()>& program, std::string_view sentence) {
    if (is_child()) {
        program();
        return;
    }
    const child_end end = run_child(name_of_running_test());
    const bool aborted =
        !end.timed_out && WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT;
    // A sanitizer's handler may turn the signal into an exit status.
    EXPECT_TRUE(aborted || (coil_test::sanitized && !end.timed_out && end.status != 0))
        << end.sentence() << "; its output:\n"
        << end.output;
    EXPECT_NE(end.output.find(sentence), std::string::npos) << "the message is not in its output:\n"
                                                            << end.output;
}

} // namespace lifetime_test

/// A TEST() whose program runs in a separate process.
#define ISOLATED_TEST(suite, name)                                                                 \
    static void suite##_##name##_program();                                                        \
    TEST(suite, name) { lifetime_test::isolated(suite##_##name##_program); }                       \
    static void suite##_##name##_program()

/// The same for a program that is known to fail for the given reason. It is run only if
/// COIL_LIFETIME_ALL is set.
#define KNOWN_TO_FAIL_TEST(suite, name, reason)                                                    \
    static void suite##_##name##_program();                                                        \
    TEST(suite, name) {                                                                            \
        if (std::getenv("COIL_LIFETIME_ALL") == nullptr) {                                         \
            GTEST_SKIP() << (reason);                                                              \
        }                                                                                          \
        lifetime_test::isolated(suite##_##name##_program);                                         \
    }                                                                                              \
    static void suite##_##name##_program()
